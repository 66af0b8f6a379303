// ---- Elements --------------------------------------------------------------------------------------------------------

// An element; text is text and never markup. `on…` are listeners, other properties are attributes; false leaves out.
function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties || {}))
    if (key.startsWith("on"))
      element.addEventListener(key.slice(2), value);
    else if (key === "style")
      for (const [name, text] of Object.entries(value))
        name.startsWith("--") ? element.style.setProperty(name, text) : element.style[name] = text;
    else if (value !== false && value !== undefined)
      element.setAttribute(key, value === true ? "" : value);
  element.append(...children.flat().filter(child => child !== undefined && child !== null && child !== false));
  return element;
}
// A name that may go on in the next line behind each part.
const breakable = name => name.split(/(?<=[/+])/).flatMap((part, i) => i ? [el("wbr"), part] : [part]);
const byId = id => document.getElementById(id);
let unique = 0;

// What a screen reader is told while a chart, which has no elements, is moved through.
function say(text) { byId("said").textContent = text; }

const tip = {
  show(x, y, lines) {
    const box = byId("tip");
    box.replaceChildren(...lines.filter(line => line).map(line => el("div", {}, line)));
    box.hidden = false;
    const {width, height} = box.getBoundingClientRect();
    box.style.left = Math.max(4, Math.min(x + 14, innerWidth - width - 6)) + "px";
    box.style.top = (y + 18 + height > innerHeight ? Math.max(4, y - height - 10) : y + 18) + "px";
  },
  hide() { byId("tip").hidden = true; },
};

const legend = items => el("ul", {class: "legend"}, items.map(([color, text]) =>
  el("li", {}, el("span", {class: "swatch", style: {background: `var(--${color})`}}), text)));

function choice(label, options, chosen, onchange) {
  const select = el("select", {onchange: () => onchange(options[select.selectedIndex][0])},
    options.map(([value, text]) => el("option", {selected: value === chosen}, text)));
  return el("label", {}, label, select);
}

// Buttons of which one is pressed.
function toggle(label, options, chosen, onchange) {
  const group = el("span", {class: "group", role: "group", "aria-label": label}, options.map(([value, text]) =>
    el("button", {class: "button", type: "button", "aria-pressed": String(value === chosen), onclick: event => {
      for (const button of group.children)
        button.setAttribute("aria-pressed", String(button === event.currentTarget));
      onchange(value);
    }}, text)));
  return group;
}

// ---- Tables ------------------------------------------------------------------------------------------------------------

// A table of any number of rows, of which those in sight are elements. Columns: {title, width (of a grid), text(row),
// cell(row) where it is no text, number, sort(row) where it can be sorted}. With `children(row)` it is a tree: rows have
// `key`. The table is one stop of the Tab key; arrows, Page Up and Down, Home and End move the current row, Enter opens
// it, left and right close and open a branch. Buttons in the heads sort.
class Table {
  constructor({label, columns, rows, onopen, children, sort, descending, current}) {
    Object.assign(this, {columns, onopen, children});
    this.id = "table" + ++unique;
    this.rowHeight = 28;
    this.opened = new Set();
    this.sortBy = sort;
    this.descending = descending ?? true;
    this.template = columns.map(column => column.width || "minmax(60px, 1fr)").join(" ");
    this.heads = columns.map((column, i) => el("span", {role: "columnheader", class: column.number ? "number" : "", "aria-sort": column.sort ? "none" : false},
      column.sort ? el("button", {type: "button", onclick: () => this.sort(i, this.sortBy === i ? !this.descending : !!column.number)}, column.title) : column.title));
    this.body = el("div", {class: "rows", role: "rowgroup", style: {position: "relative"}});
    this.scroll = el("div", {class: "scroll", tabindex: "0", role: children ? "treegrid" : "grid", "aria-label": label, "aria-colcount": columns.length,
      onscroll: () => this.draw(), onkeydown: event => this.key(event)},
      el("div", {class: "row head", role: "row", style: {gridTemplateColumns: this.template}}, this.heads), this.body);
    this.element = el("div", {class: "table"}, this.scroll);
    this.setRows(rows, current);
    new ResizeObserver(() => this.draw()).observe(this.scroll);
  }

  setRows(rows, current) {
    this.given = rows;
    this.arrange(current);
  }

  sort(column, descending) {
    const row = this.current;
    this.sortBy = column;
    this.descending = descending;
    this.arrange(row);
  }

  // The rows in the order in which they are shown.
  arrange(current) {
    const value = this.columns[this.sortBy]?.sort;
    const order = rows => {
      if (!value)
        return rows;
      const compare = (a, b) => typeof a === "string" ? a.localeCompare(b, "en", {numeric: true}) : a - b;
      return rows.slice().sort((a, b) => compare(value(a), value(b)) * (this.descending ? -1 : 1));
    };
    this.shown = [];
    const add = (rows, level) => {
      for (const row of order(rows)) {
        const below = this.children?.(row);
        this.shown.push({row, level, branch: below?.length > 0, size: rows.length});
        if (below?.length && this.opened.has(row.path))
          add(below, level + 1);
      }
    };
    add(this.given, 1);
    this.current = current;
    this.at = Math.max(0, this.shown.findIndex(({row}) => row === current));
    this.heads.forEach((head, i) => this.columns[i].sort && head.setAttribute("aria-sort", this.sortBy !== i ? "none" : this.descending ? "descending" : "ascending"));
    this.body.style.height = this.shown.length * this.rowHeight + "px";
    this.scroll.setAttribute("aria-rowcount", this.shown.length + 1);
    this.draw(true);
    if (current)
      this.reveal();
  }

  draw(anew) {
    const first = Math.max(0, Math.floor(this.scroll.scrollTop / this.rowHeight) - 6);
    const last = Math.min(this.shown.length, Math.ceil((this.scroll.scrollTop + (this.scroll.clientHeight || 400)) / this.rowHeight) + 6);
    const key = [first, last, this.at].join();
    if (!anew && key === this.drawn)
      return;
    this.drawn = key;
    this.body.replaceChildren(...this.shown.slice(first, last).map(({row, level, branch}, i) => {
      const index = first + i;
      const cells = this.columns.map((column, c) => {
        const cell = el("span", {role: "gridcell", class: (column.number ? "number " : "") + (column.mono ? "mono" : "")}, column.cell ? column.cell(row) : String(column.text(row)));
        if (!column.cell)
          cell.title = column.text(row);
        if (this.children && c === 0) {
          cell.style.paddingLeft = (level - 1) * 16 + "px";
          cell.prepend(el("span", {class: "twist", "aria-hidden": "true", onclick: event => { event.stopPropagation(); this.move(index); this.turn(!this.opened.has(row.path)); }},
            branch ? this.opened.has(row.path) ? "▾" : "▸" : ""));
        }
        return cell;
      });
      return el("div", {id: this.id + "-" + index, class: "row" + (index === this.at ? " current" : "") + (row === this.current ? " chosen" : ""), role: "row", "aria-rowindex": index + 2, "aria-selected": String(index === this.at),
        "aria-level": this.children ? level : false, "aria-expanded": branch ? String(this.opened.has(row.path)) : false,
        style: {top: index * this.rowHeight + "px", gridTemplateColumns: this.template},
        onclick: () => { this.move(index); this.open(); }}, cells);
    }));
    if (!this.shown.length)
      this.body.replaceChildren(el("div", {class: "empty"}, "Nothing here."));
    this.shown.length ? this.scroll.setAttribute("aria-activedescendant", this.id + "-" + this.at) : this.scroll.removeAttribute("aria-activedescendant");
  }

  reveal() {
    const top = this.at * this.rowHeight, height = this.scroll.clientHeight - 32;
    if (top < this.scroll.scrollTop)
      this.scroll.scrollTop = top;
    else if (height > 0 && top + this.rowHeight > this.scroll.scrollTop + height)
      this.scroll.scrollTop = top + this.rowHeight - height;
    this.draw();
  }

  move(to) {
    this.at = Math.max(0, Math.min(this.shown.length - 1, to));
    this.draw(true);
    this.reveal();
  }

  open() {
    this.current = this.shown[this.at].row;
    this.draw(true);
    this.onopen?.(this.current);
  }

  turn(open) {
    const {row} = this.shown[this.at];
    open ? this.opened.add(row.path) : this.opened.delete(row.path);
    const chosen = this.current;
    this.arrange(row);
    this.current = chosen;
    this.draw(true);
  }

  key(event) {
    // The heads' buttons, by which rows are sorted, are inside as well.
    if (event.target !== this.scroll || event.ctrlKey || event.metaKey || event.altKey || !this.shown.length)
      return;
    const page = Math.max(1, Math.floor(this.scroll.clientHeight / this.rowHeight) - 2), here = this.shown[this.at];
    const to = {ArrowDown: this.at + 1, ArrowUp: this.at - 1, PageDown: this.at + page, PageUp: this.at - page, Home: 0, End: this.shown.length - 1}[event.key];
    if (to !== undefined)
      this.move(to);
    else if (event.key === "Enter" || event.key === " ")
      this.open();
    else if (this.children && event.key === "ArrowRight") {
      if (here.branch && !this.opened.has(here.row.path))
        this.turn(true);
      else if (here.branch)
        this.move(this.at + 1);
    } else if (this.children && event.key === "ArrowLeft") {
      if (here.branch && this.opened.has(here.row.path))
        this.turn(false);
      else
        for (let i = this.at - 1; i >= 0; --i)
          if (this.shown[i].level < here.level) {
            this.move(i);
            break;
          }
    } else
      return;
    event.preventDefault();
  }
}

const meterCell = (part, text) => el("span", {class: "meter", title: text, style: {width: Math.max(0, Math.min(1, part)) * 100 + "%"}});

// ---- Search --------------------------------------------------------------------------------------------------------------

// What can be found: variables, nodes, operations that are of no node, buckets, tasks.
const findable = (() => {
  const all = [];
  const add = (kind, name, fact, target) => all.push({kind, name, lower: name.toLowerCase(), fact, target});
  plan.tasks.forEach((task, i) => add("task", task.name, format.bytes(task.variable_bytes), {kind: "task", task: i}));
  plan.variables.forEach(variable => add("variable", variable.label, format.bytes(variable.bytes), {kind: "variable", variable}));
  for (const entry of plan.entries)
    for (const bucket of entry.buckets)
      add("bucket", "bucket " + bucket.number + (plan.entries.length > 1 ? " of " + entry.name : ""), format.bytes(bucket.bytes), {kind: "bucket", bucket});
  for (const node of nodes.values())
    add("node", node.name, node.operations[0]?.category.replace("_", "-") || "", {kind: "node", node});
  for (const entry of plan.entries)
    for (const operation of entry.operations)
      if (!nodes.has(operation.name))
        add("operation", operation.name, entry.name, {kind: "operation", operation});
  return all;
})();

function find(text, most) {
  const words = text.toLowerCase().split(/\s+/).filter(word => word);
  if (!words.length)
    return {hits: [], count: 0};
  const hits = [];
  for (const item of findable) {
    if (!words.every(word => item.lower.includes(word) || item.kind.startsWith(word)))
      continue;
    const at = item.lower.indexOf(words[0]);
    // The whole name, its beginning, the beginning of a part, then anywhere; shorter names first.
    const rank = item.lower === words[0] ? 0 : at === 0 ? 1 : at > 0 && "/ _".includes(item.lower[at - 1]) ? 2 : 3;
    hits.push([rank, item.name.length, item]);
  }
  hits.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  return {hits: hits.slice(0, most).map(hit => hit[2]), count: hits.length};
}

function startSearch(onchoose) {
  const input = byId("search"), list = byId("found");
  let hits = [], at = -1;
  const show = () => {
    const {hits: found, count} = find(input.value, 60);
    hits = found;
    at = hits.length ? 0 : -1;
    const word = input.value.toLowerCase().split(/\s+/).find(part => part) || "";
    list.replaceChildren(...hits.map((hit, i) => {
      const from = hit.lower.indexOf(word);
      const name = from < 0 ? [hit.name] : [hit.name.slice(0, from), el("mark", {}, hit.name.slice(from, from + word.length)), hit.name.slice(from + word.length)];
      return el("div", {class: "hit", role: "option", id: "hit" + i, "aria-selected": String(i === at), onmousedown: event => { event.preventDefault(); choose(i); }},
        el("span", {class: "kind"}, hit.kind), el("span", {class: "name mono"}, name), el("span", {class: "fact"}, hit.fact));
    }));
    if (count > hits.length)
      list.append(el("div", {class: "empty", role: "presentation"}, format.count(count - hits.length) + " more: type more of the name"));
    if (input.value.trim() && !hits.length)
      list.append(el("div", {class: "empty", role: "presentation"}, "Nothing has this name."));
    list.hidden = !input.value.trim();
    input.setAttribute("aria-expanded", String(!list.hidden));
    mark();
    if (!list.hidden)
      say(count ? format.many(count, "result") : "nothing found");
  };
  const mark = () => {
    [...list.querySelectorAll(".hit")].forEach((hit, i) => hit.setAttribute("aria-selected", String(i === at)));
    at < 0 ? input.removeAttribute("aria-activedescendant") : input.setAttribute("aria-activedescendant", "hit" + at);
    byId("hit" + at)?.scrollIntoView({block: "nearest"});
  };
  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const choose = i => {
    close();
    onchoose(hits[i].target);
  };
  input.addEventListener("input", show);
  input.addEventListener("focus", () => input.value.trim() && show());
  input.addEventListener("blur", close);
  input.addEventListener("keydown", event => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (list.hidden)
        show();
      else if (hits.length)
        at = (at + (event.key === "ArrowDown" ? 1 : hits.length - 1)) % hits.length;
      mark();
    } else if (event.key === "Enter" && at >= 0 && !list.hidden)
      choose(at);
    else if (event.key === "Escape")
      list.hidden ? input.value = "" : close();
    else
      return;
    event.preventDefault();
  });
  document.addEventListener("keydown", event => {
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      input.focus();
      input.select();
    }
  });
}
