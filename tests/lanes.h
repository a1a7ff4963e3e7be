// CUDA C on a CPU, to test kernels where there is no GPU: a block at a time, each of its threads a
// fiber. One runs until it waits for the others (a shuffle, __syncwarp, __syncthreads), so that all
// of them go on together as on a device, and a wait that some never reach is told.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __launch_bounds__(...)
#define __forceinline__ inline
#define __shared__
#define __align__(bytes)
#define SHARED static

struct Dim { unsigned x, y, z; };
static Dim blockIdx, blockDim, gridDim;
static int current;  // the thread that runs
struct Here { struct { operator unsigned() const { return (unsigned)current; } } x; };
static Here threadIdx;

double dynamic[1 << 17];

static const int MOST = 1024, STACK = 1 << 16;
static ucontext_t scheduler, fibers[MOST];
static char* stacks;
static bool done[MOST];
static long arrived_warp[MOST], arrived_block[MOST];
static unsigned long long slots[MOST];
static void (*body)();

static void pause_() { swapcontext(&fibers[current], &scheduler); }

static void wait_for(long* arrived, int first, int last) {
    const long mine = ++arrived[current];
    for (;;) {
        bool all = true;
        for (int i = first; i < last; i++) all = all && (done[i] || arrived[i] >= mine);
        if (all) return;
        pause_();
    }
}

static void __syncwarp() { wait_for(arrived_warp, current & ~31, (current & ~31) + 32); }
static void __syncthreads() { wait_for(arrived_block, 0, (int)blockDim.x); }
static void __threadfence() {}

static int atomicAdd(int* place, int value) {
    const int old = *place;
    *place += value;
    return old;
}

template <class V> static V __shfl_sync(unsigned, V value, int lane) {
    *(V*)&slots[current] = value;
    __syncwarp();
    const V found = *(V*)&slots[(current & ~31) + (lane & 31)];
    __syncwarp();
    return found;
}

template <class V> static V __shfl_xor_sync(unsigned mask, V value, int step) {
    return __shfl_sync(mask, value, (current & 31) ^ step);
}

static unsigned __ballot_sync(unsigned, bool value) {
    unsigned found = 0;
    for (int lane = 0; lane < 32; lane++) found |= (unsigned)__shfl_sync(~0u, (int)value, lane) << lane;
    return found;
}

static int __popc(unsigned value) { return __builtin_popcount(value); }
static int __ffs(int value) { return __builtin_ffs(value); }

static void run_fiber() {
    body();
    done[current] = true;
    pause_();
}

static void run_grid(unsigned blocks, unsigned starts, unsigned threads, void (*kernel)()) {
    if (!stacks) stacks = (char*)malloc((size_t)MOST * STACK);
    body = kernel;
    gridDim = {blocks, starts, 1};
    blockDim = {threads, 1, 1};
    for (unsigned b = 0; b < blocks * starts; b++) {
        blockIdx = {b % blocks, b / blocks, 0};
        for (int i = 0; i < (int)threads; i++) {
            done[i] = false;
            arrived_warp[i] = arrived_block[i] = 0;
            getcontext(&fibers[i]);
            fibers[i].uc_stack.ss_sp = stacks + (size_t)i * STACK;
            fibers[i].uc_stack.ss_size = STACK;
            fibers[i].uc_link = &scheduler;
            makecontext(&fibers[i], run_fiber, 0);
        }
        for (bool left = true; left;) {
            left = false;
            for (int i = 0; i < (int)threads; i++)
                if (!done[i]) {
                    current = i;
                    swapcontext(&scheduler, &fibers[i]);
                    left = left || !done[i];
                }
        }
    }
}
