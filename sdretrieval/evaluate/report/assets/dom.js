// Numbers as text, and tables that sort.

const DASH = "–";
const MINUS = "−";

function fixed(value, places = 4) {
  return value === null || value === undefined ? DASH : value.toFixed(places).replace("-", MINUS);
}

function signed(value, places = 4) {
  if (value === null || value === undefined) return DASH;
  const text = fixed(value, places);
  return value > 0 ? "+" + text : text;
}

function percent(value) {
  return value === null || value === undefined ? DASH : signed(100 * value, 1) + " %";
}

/** A p-value for reading: never 0, no more digits than it deserves. */
function probability(p) {
  if (p === null || p === undefined) return DASH;
  if (p < 0.0001) return "<.0001";
  return p >= 1 ? "1" : p.toFixed(p < 0.01 ? 4 : 3).replace(/^0/, "");
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function moment(ms) {
  const text = new Date(ms).toISOString();
  return text.slice(0, 10) + (text.slice(11, 19) === "00:00:00" ? "" : " " + text.slice(11, 16));
}

function select(label, options, chosen, change) {
  const box = el("select", { onchange: (event) => change(Number(event.target.value)) },
    options.map((text, i) => el("option", { value: i, selected: i === chosen }, text)));
  return el("label", {}, label, box);
}

/**
 * A table whose columns sort by click or key.
 * columns: {title, hint, num, value(row), cell(row) -> node(s), first: "descending", header: true for the row's name}
 */
function sortable(columns, rows, { sort = 0, className = "", caption = "", ordered = null } = {}) {
  const state = { column: sort, direction: columns[sort].first || "ascending" };
  const body = el("tbody");
  const heads = columns.map((column, i) => el("th", {
    scope: "col", class: [column.num && "num", column.wide && "wide"].filter(Boolean).join(" ") || null, title: column.hint,
  }, el("button", { class: "sort", type: "button", onclick: () => click(i) }, column.title)));

  function click(i) {
    const opposite = { ascending: "descending", descending: "ascending" };
    state.direction = i === state.column ? opposite[state.direction] : columns[i].first || "ascending";
    state.column = i;
    draw();
  }

  function draw() {
    const { value } = columns[state.column];
    const down = state.direction === "descending" ? -1 : 1;
    const keyed = rows.map((row, i) => ({ row, i, key: value(row) }));
    // What has no value stands last in either direction.
    keyed.sort((a, b) => (a.key === null) - (b.key === null) || down * compareKeys(a.key, b.key) || a.i - b.i);
    heads.forEach((head, i) => head.setAttribute("aria-sort", i === state.column ? state.direction : "none"));
    if (ordered) ordered(keyed.map(({ row }) => row));
    body.replaceChildren(...keyed.map(({ row }) => el("tr", {}, columns.map((column) => el(
      column.header ? "th" : "td",
      { scope: column.header && "row",
        class: [column.num && "num", column.wide && "wide", column.className].filter(Boolean).join(" ") || null },
      column.cell(row))))));
  }

  draw();
  const table = el("table", { class: className || null },
    caption && el("caption", { class: "visually-hidden" }, caption), el("thead", {}, el("tr", {}, heads)), body);
  return el("div", { class: "scroll" }, table);
}

const collator = new Intl.Collator("en", { numeric: true });

function compareKeys(a, b) {
  if (a === null || b === null) return 0;
  return typeof a === "string" ? collator.compare(a, b) : a - b;
}
