"use strict";
(() => {
  const table = document.getElementById("events");
  const body = table.tBodies[0];
  const which = document.getElementById("which");
  const least = document.getElementById("least");
  const shown = document.getElementById("shown");
  const rows = Array.from(body.rows);
  const value = (row, column) => Number(row.cells[column].dataset.value);

  const filter = () => {
    let count = 0;
    for (const row of rows) {
      const strength = Number(row.dataset.strength);
      const kept = (which.value === "" || row.dataset.motif === which.value) &&
        (least.value === "" || strength >= Number(least.value));
      row.hidden = !kept;
      count += kept ? 1 : 0;
    }
    shown.textContent = count + " of " + rows.length + " events";
  };

  const sort = (button) => {
    const heading = button.closest("th");
    const column = Number(button.dataset.column);
    const descending = heading.getAttribute("aria-sort") === "ascending";
    for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const sign = descending ? -1 : 1;
    rows.sort((a, b) => sign * (value(a, column) - value(b, column)));
    body.append(...rows);
  };

  for (const button of table.tHead.querySelectorAll("button")) {
    button.addEventListener("click", () => sort(button));
  }
  which.addEventListener("input", filter);
  least.addEventListener("input", filter);
  filter();
})();
