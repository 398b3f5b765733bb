// Tables that can be sorted by a click on a head, and settings reduced to what differs.
"use strict";

function sortBy(table, column, direction) {
  const body = table.tBodies[0];
  const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
  const rows = [...body.rows].map((row) => [row, key(row), Number(key(row))]);
  rows.sort(([, a, x], [, b, y]) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const order = Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, "en", { numeric: true }) : x - y;
    return order * direction;
  });
  body.append(...rows.map(([row]) => row));
  [...table.tHead.rows[0].cells].forEach((head, i) => {
    if (i === column) head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
    else head.removeAttribute("aria-sort");
  });
}

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      sortBy(table, column, head.getAttribute("aria-sort") === "ascending" ? -1 : 1);
    });
  });
}

const onlyDifferences = document.getElementById("only-differences");
if (onlyDifferences) {
  onlyDifferences.addEventListener("change", () => {
    for (const row of document.querySelectorAll("#setting-table tr.same")) row.hidden = onlyDifferences.checked;
  });
}
