// From the data in the page to its charts: legend, controls, numbers, printing.
"use strict";

const plots = new Plots(JSON.parse(document.getElementById("data").textContent));
const byId = (id) => document.getElementById(id);

function fillReferences() {
  const { entries } = plots.curves;
  const groups = { Settings: [], "Single runs": [], "Simple codes": [] };
  for (const { id, name } of plots.series) groups[id.startsWith("code") ? "Simple codes" : "Settings"].push([id, name]);
  for (const entry of entries) {
    if (entry.runs.length > 1) entry.runs.forEach((run, i) => groups["Single runs"].push([`run:${run}`, entry.names[i]]));
  }
  for (const [title, options] of Object.entries(groups)) {
    if (!options.length) continue;
    const group = byId("reference").appendChild(document.createElement("optgroup"));
    group.label = title;
    for (const [value, name] of options) group.appendChild(new Option(name, value));
  }
  byId("reference").value = plots.state.reference;
}

function fillLegend() {
  const list = byId("legend");
  for (const series of plots.series) {
    const item = list.appendChild(document.createElement("li"));
    const label = item.appendChild(document.createElement("label"));
    const box = label.appendChild(document.createElement("input"));
    box.type = "checkbox";
    box.addEventListener("change", () => {
      if (box.checked) plots.state.shown.add(series.id);
      else plots.state.shown.delete(series.id);
      plots.change({});
    });
    const mark = label.appendChild(document.createElement("span"));
    const name = label.appendChild(document.createElement("span"));
    name.className = "name";
    name.textContent = name.title = series.name;
    const output = label.appendChild(document.createElement("output"));
    item.classList.toggle("code", series.id.startsWith("code"));
    Object.assign(series, { item, box, mark, output });
  }
  byId("filter").hidden = plots.curves.entries.length <= FEW;
  byId("seeds").closest("label").hidden = !plots.curves.entries.some(({ runs }) => runs.length > 1);
}

// Legend and numbers follow what is shown and against what.
function update() {
  for (const series of plots.series) {
    const regret = plots.valuesOf("regret", plots.curveOf(series));
    series.box.checked = plots.state.shown.has(series.id);
    series.mark.replaceChildren(swatch(plots.look(series)));
    const whole = series.finite && regret.length === plots.curves.kept.length;
    series.output.textContent = whole ? withSign(regret[regret.length - 1]) : series.finite ? "–" : "∞";
    series.item.classList.toggle("off", !series.box.checked);
  }
  const hidden = plots.series.filter(({ id }) => id.startsWith("entry") && !plots.state.shown.has(id)).length;
  byId("others").closest("label").classList.toggle("kept", !hidden); // its room stays: hiding a run moves nothing
  const chosen = byId("reference").selectedOptions[0];
  for (const place of document.querySelectorAll(".reference-name")) place.textContent = chosen ? chosen.text : "";
  byId("regret").querySelector(".plot").setAttribute("aria-label", describeRegret());
  fillNumbers();
}

function describeRegret() {
  const shown = plots.series.filter(({ id }) => plots.state.shown.has(id));
  const ends = shown.slice(0, 8).map(({ name, output }) => `${name} ${output.textContent}`);
  return `Regret in nats against the number of labels coded. At the end: ${ends.join(", ")}. Arrow keys read values.`;
}

// Once a run has a row in the numbers, the row stays, so that hiding the run moves nothing below.
let known = new Set();

// Regret at a few numbers of labels, for print and for those who do not see the picture.
function fillNumbers() {
  const { kept, length } = plots.curves;
  const shares = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1];
  const places = [...new Set(shares.map((share) => plots.curves.nearest(length * share)))].filter((at) => kept[at] > 0);
  const table = byId("numbers");
  table.replaceChildren(table.caption);
  const head = table.createTHead().insertRow();
  for (const text of ["after labels", ...places.map((at) => number(kept[at]))]) {
    const cell = head.appendChild(document.createElement("th"));
    cell.scope = "col";
    cell.textContent = text;
  }
  const body = table.createTBody();
  const listed = plots.series.filter(({ id }) => plots.state.shown.has(id) || (known.has(id) && !plots.printing));
  known = new Set(listed.map(({ id }) => id));
  for (const series of listed) {
    const row = body.insertRow();
    row.classList.toggle("kept", !plots.state.shown.has(series.id));
    const name = row.appendChild(document.createElement("th"));
    name.scope = "row";
    name.textContent = series.name;
    const regret = plots.valuesOf("regret", plots.curveOf(series));
    for (const at of places) row.insertCell().textContent = at < regret.length ? withSign(regret[at]) : "–";
  }
}

function choose(ids) {
  plots.state.shown = new Set(ids);
  plots.change({});
}

function listen() {
  const entries = plots.series.filter(({ id }) => id.startsWith("entry"));
  byId("reference").addEventListener("change", (event) => plots.change({ reference: event.target.value }));
  byId("axis").addEventListener("change", (event) => plots.change({ logX: event.target.value === "log", zoom: null }));
  byId("width").addEventListener("change", (event) => plots.change({ width: Number(event.target.value) }));
  byId("seeds").addEventListener("change", (event) => plots.change({ seeds: event.target.checked }));
  byId("others").addEventListener("change", (event) => plots.change({ others: event.target.checked }));
  byId("all").addEventListener("click", () => choose(entries.map(({ id }) => id)));
  byId("none").addEventListener("click", () => choose([]));
  byId("best").addEventListener("click", () => choose(entries.slice(0, SHOWN_AT_FIRST).map(({ id }) => id)));
  byId("closer").addEventListener("click", () => plots.scaleBy(0.5));
  byId("wider").addEventListener("click", () => plots.scaleBy(2));
  byId("whole").addEventListener("click", () => plots.zoom(null));
  byId("filter").addEventListener("input", (event) => {
    const wanted = event.target.value.toLowerCase();
    for (const { item, name } of plots.series) item.hidden = !name.toLowerCase().includes(wanted);
  });
  new ResizeObserver(() => requestAnimationFrame(() => plots.fit())).observe(byId("regret"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots.change({}));
  let opened = [];
  window.addEventListener("beforeprint", () => {
    document.documentElement.classList.add("printing");
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const details of opened) details.open = true;
    plots.printing = true;
    plots.draw(3);
    update();
  });
  window.addEventListener("afterprint", () => {
    document.documentElement.classList.remove("printing");
    for (const details of opened) details.open = false;
    plots.printing = false;
    plots.change({});
  });
}

byId("seeds").checked = plots.state.seeds;
byId("axis").value = plots.state.logX ? "log" : "linear";
byId("best").textContent = `best ${SHOWN_AT_FIRST}`;
byId("best").hidden = plots.curves.entries.length <= SHOWN_AT_FIRST;
plots.onchange = update;
fillReferences();
fillLegend();
listen();
plots.change({});
document.documentElement.dataset.ready = "true";
