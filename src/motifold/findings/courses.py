"""The courses of several fits as one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Course = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]  # seconds and loss


def median_course(courses: list[Course], max_points: int) -> Course:
    """The median loss at each time of any of them, from the start of the last to start.

    Between its points a course is a straight line; one that has ended keeps its last loss.
    """
    if len(courses) == 1:
        return courses[0]
    times = np.unique(np.concatenate([seconds for seconds, _ in courses]))
    times = times[times >= max(seconds[0] for seconds, _ in courses)]
    if len(times) > max_points:
        times = times[np.linspace(0, len(times) - 1, max_points).round().astype(int)]
    losses = np.stack([np.interp(times, seconds, loss) for seconds, loss in courses])
    return times, np.median(losses, axis=0)
