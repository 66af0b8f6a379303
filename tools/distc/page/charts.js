// ---- Charts: canvases that are drawn anew when they or the scheme of colours change ------------------------------

const palette = {
  colors: {},
  read() {
    const style = getComputedStyle(document.documentElement);
    for (const name of [...categories, "page", "panel", "sunk", "line", "strong-line", "text", "quiet", "accent", "on-fill", "focus", "trained", "slot", "other", "data", "idle", "curve", "curve-fill"])
      this.colors[name] = style.getPropertyValue("--" + name).trim();
  },
  of(name) { return this.colors[name] || this.colors.other; },
};
palette.read();
const charts = new Set();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { palette.read(); charts.forEach(chart => chart.redraw()); });

const textFont = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

class Chart {
  constructor({label, height, hint}) {
    this.canvas = el("canvas", {"aria-hidden": "true"});
    // A chart takes the arrow keys, as an application does; what it shows is said, and in a table beside it.
    this.element = el("div", {class: "chart", tabindex: "0", role: "application", "aria-label": label, "aria-description": hint, style: {height: height + "px"},
      onkeydown: event => { if (!event.ctrlKey && !event.metaKey && !event.altKey && this.key(event.key)) event.preventDefault(); },
      onfocus: () => this.redraw(), onblur: () => { tip.hide(); this.redraw(); }}, this.canvas);
    this.width = 1;
    charts.add(this);
    new ResizeObserver(() => this.redraw()).observe(this.element);
    this.canvas.addEventListener("pointermove", event => this.point(event));
    this.canvas.addEventListener("pointerleave", () => tip.hide());
  }

  setHeight(height) { this.element.style.height = height + "px"; }
  get focused() { return document.activeElement === this.element && this.element.matches(":focus-visible"); }

  redraw() {
    if (this.waiting)
      return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      const {clientWidth: width, clientHeight: height} = this.element;
      if (!width || !height)
        return;
      this.width = width; // asking the element for each item drawn would lay the page out each time
      const scale = devicePixelRatio || 1;
      if (this.canvas.width !== Math.round(width * scale) || this.canvas.height !== Math.round(height * scale)) {
        this.canvas.width = Math.round(width * scale);
        this.canvas.height = Math.round(height * scale);
      }
      const context = this.canvas.getContext("2d");
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.clearRect(0, 0, width, height);
      context.font = textFont;
      context.textBaseline = "middle";
      this.draw(context, width, height);
    });
  }

  key() { return false; }
  point() {}
}

// Text that fits, or its end left out.
function clipped(context, text, width) {
  if (width < 18)
    return "";
  const letters = Math.floor(width / 6.3);
  if (text.length <= letters && context.measureText(text).width <= width)
    return text;
  let keep = Math.min(text.length, Math.ceil(width / 5));
  while (keep > 1 && context.measureText(text.slice(0, keep) + "…").width > width)
    --keep;
  return keep > 1 ? text.slice(0, keep) + "…" : "";
}

// Round numbers of a scale.
function ticks(from, to, count) {
  const rough = (to - from) / Math.max(1, count), power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].find(factor => factor * power >= rough) * power;
  const found = [];
  for (let tick = Math.ceil(from / step) * step; tick <= to + step * 1e-6; tick += step)
    found.push(tick);
  return found;
}

// A chart with time, or the operations in order, from left to right, which can be moved and magnified.
class TimeChart extends Chart {
  constructor(options) {
    super(options);
    this.mostGutter = options.gutter;
    this.canvas.addEventListener("wheel", event => {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        this.zoom(Math.exp(event.deltaY / 300), this.toTime(event.offsetX));
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        this.pan((event.deltaX || event.deltaY) / this.pixelsPerUnit());
      }
    }, {passive: false});
    this.canvas.addEventListener("pointerdown", event => {
      this.dragged = {x: event.offsetX, from: this.from, moved: false};
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointerup", event => {
      if (this.dragged && !this.dragged.moved)
        this.click(event);
      this.dragged = null;
    });
    this.canvas.addEventListener("pointercancel", () => this.dragged = null);
  }

  setSpan(end) {
    this.end = Math.max(end, 1e-6);
    this.from = 0;
    this.to = this.end;
  }
  get gutter() { return Math.min(this.mostGutter, this.width * 0.28); }
  get plotWidth() { return Math.max(1, this.width - this.gutter); }
  pixelsPerUnit() { return this.plotWidth / (this.to - this.from); }
  toX(time) { return this.gutter + (time - this.from) * this.pixelsPerUnit(); }
  toTime(x) { return this.from + (x - this.gutter) / this.pixelsPerUnit(); }

  window(from, width) {
    const size = Math.min(this.end, Math.max(width, this.end / 1e5));
    this.from = Math.min(Math.max(0, from), this.end - size);
    this.to = this.from + size;
    this.onwindow?.(this.from, this.to);
    this.redraw();
  }
  zoom(factor, around = (this.from + this.to) / 2) {
    const width = (this.to - this.from) * factor;
    this.window(around - (around - this.from) * width / (this.to - this.from), width);
  }
  pan(by) { this.window(this.from + by, this.to - this.from); }
  fit() { this.window(0, this.end); }
  show(begin, end) {
    const width = this.to - this.from;
    if (end - begin > width)
      this.window(begin, (end - begin) * 1.2);
    else if (begin < this.from || end > this.to)
      this.window((begin + end) / 2 - width / 2, width);
    else
      this.redraw();
  }
  buttons() {
    const button = (text, label, onclick) => el("button", {class: "button", type: "button", "aria-label": label, title: label, onclick}, text);
    return el("span", {class: "group", role: "group", "aria-label": "Magnify"}, button("−", "Magnify less", () => this.zoom(2)),
      button("+", "Magnify", () => this.zoom(0.5)), button("Fit", "Show all", () => this.fit()));
  }
  magnify(key) {
    // Around what the keys are at.
    const action = {"+": () => this.zoom(0.5, this.anchor), "=": () => this.zoom(0.5, this.anchor), "-": () => this.zoom(2, this.anchor), "0": () => this.fit()}[key];
    action?.();
    if (action)
      tip.hide();
    return !!action;
  }
  drawScale(context, width, height, text, top) {
    context.strokeStyle = palette.of("line");
    context.fillStyle = palette.of("quiet");
    context.lineWidth = 1;
    context.beginPath();
    for (const tick of ticks(this.from, this.to, this.plotWidth / 110)) {
      const x = Math.round(this.toX(tick)) + 0.5;
      if (x < this.gutter - 1)
        continue;
      context.moveTo(x, top);
      context.lineTo(x, height);
      const label = text(tick);
      if (x + context.measureText(label).width + 8 < width)
        context.fillText(label, x + 4, top / 2 + 1);
    }
    context.stroke();
  }
  click() {}
  point(event) {
    if (this.dragged && (this.dragged.moved || Math.abs(event.offsetX - this.dragged.x) > 4)) {
      this.dragged.moved = true;
      this.window(this.dragged.from - (event.offsetX - this.dragged.x) / this.pixelsPerUnit(), this.to - this.from);
      tip.hide();
    } else
      this.hover(event);
  }
}

// Lanes of items {begin, end, label, color, target, lines}, and under them a curve of the memory in use.
class ScheduleChart extends TimeChart {
  constructor(options) {
    super({...options, gutter: 128, height: 200, hint: "Left and right arrows: the item before and after. Up and down: another lane. Enter: details. Plus, minus, 0: magnify."});
    this.onopen = options.onopen;
    this.top = 24;
    this.laneHeight = 26;
    this.curveHeight = 64;
  }

  setLanes(lanes, end, curve) {
    this.lanes = lanes;
    this.curve = curve;
    // Room for the longest label.
    const context = this.canvas.getContext("2d");
    context.font = textFont;
    this.mostGutter = Math.min(210, Math.max(112, ...lanes.map(lane => context.measureText(lane.label).width + 24)));
    this.setSpan(end);
    this.lane = this.lanes.findIndex(lane => lane.items.length);
    this.item = 0;
    this.setHeight(this.top + lanes.length * this.laneHeight + (curve ? this.curveHeight + 14 : 4));
    this.redraw();
  }

  get current() { return this.lanes[this.lane]?.items[this.item]; }
  get anchor() {
    const item = this.current, middle = item && (item.begin + item.end) / 2;
    return item && middle >= this.from && middle <= this.to ? middle : (this.from + this.to) / 2;
  }

  select(test) {
    for (const [l, lane] of this.lanes.entries()) {
      const i = lane.items.findIndex(test);
      if (i >= 0) {
        [this.lane, this.item, this.chosen] = [l, i, lane.items[i]];
        this.show(this.chosen.begin, this.chosen.end);
        return true;
      }
    }
    return false;
  }

  // The first item of a lane that ends behind a time. (Those of a lane follow one another.)
  firstAfter(lane, time) {
    let low = 0, high = lane.items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      lane.items[middle].end < time ? low = middle + 1 : high = middle;
    }
    return low;
  }

  draw(context, width, height) {
    this.drawScale(context, width, height, format.time, this.top);
    context.save();
    context.beginPath();
    context.rect(this.gutter, 0, width - this.gutter, height);
    context.clip();
    this.lanes.forEach((lane, l) => {
      const y = this.top + l * this.laneHeight + 2, tall = this.laneHeight - 4;
      let lastX = -1, lastColor = "";
      for (let i = this.firstAfter(lane, this.from); i < lane.items.length && lane.items[i].begin <= this.to; ++i) {
        const item = lane.items[i], x = this.toX(item.begin), right = this.toX(item.end), w = Math.max(right - x, 1);
        // Items narrower than a pixel are one mark.
        if (right < lastX + 0.7 && item.color === lastColor && item !== this.chosen)
          continue;
        context.fillStyle = palette.of(item.color);
        context.fillRect(x, y, w > 3 ? w - 0.6 : w, tall);
        [lastX, lastColor] = [x + w, item.color];
        if (w > 24) {
          const shownX = Math.max(x, this.gutter);
          context.fillStyle = palette.of("on-fill");
          context.fillText(clipped(context, item.label, right - shownX - 8), shownX + 4, y + tall / 2 + 0.5);
        }
      }
    });
    for (const [item, color, thick] of [[this.chosen, "accent", 2], [this.focused ? this.current : null, "focus", 2.5]]) {
      const l = item ? this.lanes.findIndex(lane => lane.items.includes(item)) : -1;
      if (l < 0)
        continue;
      const x = this.toX(item.begin), w = Math.max(this.toX(item.end) - x, 4);
      context.strokeStyle = palette.of(color);
      context.lineWidth = thick;
      context.strokeRect(x, this.top + l * this.laneHeight + 1.5, w, this.laneHeight - 3);
    }
    if (this.curve)
      this.drawCurve(context, width);
    context.restore();
    context.fillStyle = palette.of("text");
    this.lanes.forEach((lane, l) => context.fillText(clipped(context, lane.label, this.gutter - 14), 8, this.top + (l + 0.5) * this.laneHeight));
    if (this.curve) {
      const y = this.top + this.lanes.length * this.laneHeight + 10;
      context.fillText("memory in use", 8, y + 12);
      context.fillStyle = palette.of("quiet");
      context.fillText("up to " + format.bytes(this.curve.most), 8, y + 30);
    }
  }

  drawCurve(context, width) {
    const top = this.top + this.lanes.length * this.laneHeight + 10, bottom = top + this.curveHeight - 2;
    const y = bytes => bottom - bytes / Math.max(1, this.curve.most) * (bottom - top);
    // The most in each column of pixels, so that no peak is lost between them.
    const columns = new Float64Array(Math.max(0, Math.ceil(width - this.gutter)));
    for (const [begin, end, bytes] of this.curve.spans) {
      const last = Math.min(columns.length - 1, Math.ceil(this.toX(end) - this.gutter) - 1);
      for (let x = Math.max(0, Math.floor(this.toX(begin) - this.gutter)); x <= last; ++x)
        columns[x] = Math.max(columns[x], bytes);
    }
    const outline = new Path2D();
    columns.forEach((bytes, x) => {
      outline.lineTo(this.gutter + x, y(bytes));
      outline.lineTo(this.gutter + x + 1, y(bytes));
    });
    const area = new Path2D(outline);
    area.lineTo(this.gutter + columns.length, bottom);
    area.lineTo(this.gutter, bottom);
    context.fillStyle = palette.of("curve-fill");
    context.fill(area);
    context.strokeStyle = palette.of("curve");
    context.lineWidth = 1.2;
    context.stroke(outline);
  }

  at(event) {
    const l = Math.floor((event.offsetY - this.top) / this.laneHeight), lane = this.lanes[l];
    if (!lane || event.offsetX < this.gutter)
      return null;
    const slack = 2 / this.pixelsPerUnit(), time = this.toTime(event.offsetX), i = this.firstAfter(lane, time - slack);
    const item = lane.items[i];
    return item && item.begin <= time + slack ? {l, i, item} : null;
  }

  hover(event) {
    const found = this.at(event);
    found ? tip.show(event.clientX, event.clientY, found.item.lines()) : tip.hide();
  }

  click(event) {
    const found = this.at(event);
    if (!found)
      return;
    [this.lane, this.item, this.chosen] = [found.l, found.i, found.item];
    this.redraw();
    if (found.item.target)
      this.onopen(found.item.target);
  }

  key(key) {
    if (this.magnify(key))
      return true;
    const items = this.lanes[this.lane]?.items;
    if (!items?.length)
      return false;
    if (key === "ArrowRight" || key === "ArrowLeft")
      this.item = Math.max(0, Math.min(items.length - 1, this.item + (key === "ArrowRight" ? 1 : -1)));
    else if (key === "Home" || key === "End")
      this.item = key === "Home" ? 0 : items.length - 1;
    else if (key === "ArrowUp" || key === "ArrowDown") {
      const by = key === "ArrowUp" ? -1 : 1, time = this.current.begin;
      let to = this.lane + by;
      while (this.lanes[to] && !this.lanes[to].items.length)
        to += by;
      if (this.lanes[to]) {
        this.lane = to;
        this.item = Math.min(this.lanes[to].items.length - 1, this.firstAfter(this.lanes[to], time));
      }
    } else if (key === "Enter" || key === " ") {
      this.chosen = this.current;
      this.redraw();
      if (this.current.target)
        this.onopen(this.current.target);
      return true;
    } else
      return false;
    this.show(this.current.begin, this.current.end);
    const box = this.element.getBoundingClientRect();
    tip.show(Math.min(box.right - 40, Math.max(box.left + this.gutter, box.left + this.toX(this.current.begin))), box.top + this.top + this.lane * this.laneHeight + 10, this.current.lines());
    say(this.lanes[this.lane].label + ": " + this.current.lines().filter(line => line).join(", "));
    return true;
  }
}

// The arena: addresses upwards, operations in order from left to right, a rectangle for each block while it lives.
class MemoryChart extends TimeChart {
  constructor(options) {
    super({...options, gutter: 76, height: 420, hint: "Left and right arrows: the operation before and after. Enter: details of the largest block. Plus, minus, 0: magnify."});
    Object.assign(this, {entry: options.entry, oncursor: options.oncursor, onopen: options.onopen});
    this.top = 22;
    this.blocks = this.entry.blocks.map((block, number) => ({...block, number, color: blockCategory(this.entry, block), label: blockName(this.entry, block)}));
    this.most = maxOf(this.blocks, block => block.at + block.bytes, 1);
    this.setSpan(Math.max(1, this.entry.operations.length));
    this.cursor = this.entry.live.reduce((best, bytes, i) => bytes > this.entry.live[best] ? i : best, 0);
  }

  get anchor() { return this.cursor >= this.from && this.cursor <= this.to ? this.cursor + 0.5 : (this.from + this.to) / 2; }
  toY(address) { return this.bottom - address / this.most * (this.bottom - this.top - 4); }

  draw(context, width, height) {
    this.bottom = height - 6;
    this.drawScale(context, width, height, tick => "#" + Math.round(tick), this.top);
    context.fillStyle = palette.of("quiet");
    for (const tick of ticks(0, this.most, 6))
      context.fillText(format.bytes(Math.round(tick)), 6, Math.min(this.bottom - 4, Math.max(this.top + 6, this.toY(tick))));
    context.save();
    context.beginPath();
    context.rect(this.gutter, this.top, width - this.gutter, height);
    context.clip();
    for (const block of this.blocks) {
      if (block.end + 1 < this.from || block.begin > this.to)
        continue;
      const x = this.toX(block.begin), w = Math.max(this.toX(block.end + 1) - x, 1), y = this.toY(block.at + block.bytes), h = Math.max(this.toY(block.at) - y, 0.8);
      context.fillStyle = palette.of(block.color);
      context.fillRect(x, y, w, h);
      if (w > 3 && h > 3) {
        context.strokeStyle = palette.of("page");
        context.lineWidth = 1;
        context.strokeRect(x, y, w, h);
      }
      if (h > 14 && w > 30) {
        const shown = Math.max(x, this.gutter);
        context.fillStyle = palette.of("on-fill");
        context.fillText(clipped(context, block.label, x + w - shown - 8), shown + 4, y + h / 2);
      }
    }
    if (this.chosen !== undefined) {
      const block = this.blocks.find(candidate => candidate.number === this.chosen);
      context.strokeStyle = palette.of("accent");
      context.lineWidth = 2;
      context.strokeRect(this.toX(block.begin), this.toY(block.at + block.bytes), Math.max(this.toX(block.end + 1) - this.toX(block.begin), 3), Math.max(this.toY(block.at) - this.toY(block.at + block.bytes), 3));
    }
    const x = this.toX(this.cursor + 0.5);
    context.strokeStyle = palette.of("text");
    context.lineWidth = 1.5;
    context.setLineDash([4, 3]);
    context.beginPath();
    context.moveTo(x, this.top);
    context.lineTo(x, height);
    context.stroke();
    context.setLineDash([]);
    context.restore();
  }

  at(event) {
    const time = this.toTime(event.offsetX);
    if (event.offsetX < this.gutter)
      return null;
    return this.blocks.find(block => block.begin <= time && time <= block.end + 1 && event.offsetY >= this.toY(block.at + block.bytes) - 1 && event.offsetY <= this.toY(block.at) + 1);
  }
  lines(block) {
    const {operations} = this.entry;
    return [block.label, format.bytes(block.bytes) + " at " + format.count(block.at), "from operation #" + block.begin + " to #" + block.end + (operations[block.end] ? " (" + operations[block.end].name + ")" : "")];
  }
  hover(event) {
    const block = this.at(event);
    block ? tip.show(event.clientX, event.clientY, this.lines(block)) : tip.hide();
  }
  click(event) {
    const block = this.at(event);
    this.setCursor(Math.floor(this.toTime(event.offsetX)));
    this.chosen = block?.number;
    if (block)
      this.onopen(block);
    this.redraw();
  }
  setCursor(to) {
    this.cursor = Math.max(0, Math.min(this.entry.operations.length - 1, to));
    this.show(this.cursor, this.cursor + 1);
    this.oncursor(this.cursor);
  }
  key(key) {
    if (this.magnify(key))
      return true;
    const page = Math.max(1, Math.round((this.to - this.from) / 10));
    const to = {ArrowRight: this.cursor + 1, ArrowLeft: this.cursor - 1, PageDown: this.cursor + page, PageUp: this.cursor - page, Home: 0, End: this.entry.operations.length - 1}[key];
    if (to !== undefined) {
      this.setCursor(to);
      const operation = this.entry.operations[this.cursor];
      say("operation " + this.cursor + ", " + operation.name + ": " + format.bytes(this.entry.live[this.cursor]) + " in use");
    } else if (key === "Enter") {
      const alive = this.blocks.filter(block => block.begin <= this.cursor && this.cursor <= block.end).sort((a, b) => b.bytes - a.bytes)[0];
      if (alive) {
        this.chosen = alive.number;
        this.onopen(alive);
        this.redraw();
      }
    } else
      return false;
    return true;
  }
}

// Rectangles with areas as the items' bytes (Bruls, Huizing and van Wijk, "Squarified treemaps", 2000).
class Treemap extends Chart {
  constructor({label, items, onopen}) {
    super({label, height: 300, hint: "The table below has the same variables."});
    this.element.removeAttribute("tabindex");
    this.element.setAttribute("role", "img");
    Object.assign(this, {items, onopen});
    this.canvas.style.cursor = "pointer";
    this.canvas.addEventListener("click", event => { const cell = this.at(event); if (cell) this.onopen(cell.item); });
  }
  setItems(items) { this.items = items; this.redraw(); }
  select(item) { this.chosen = item; this.redraw(); }

  layout(width, height) {
    const items = this.items.filter(item => item.bytes > 0).sort((a, b) => b.bytes - a.bytes), total = items.reduce((sum, item) => sum + item.bytes, 0);
    const cells = [];
    let [x, y, w, h] = [0, 0, width, height], i = 0;
    const scale = width * height / Math.max(1, total);
    while (i < items.length) {
      const side = Math.max(1e-3, Math.min(w, h));
      let sum = 0, worst = Infinity, n = i;
      while (n < items.length) {
        const area = items[n].bytes * scale, next = sum + area;
        const ratio = Math.max(side * side * items[i].bytes * scale / (next * next), next * next / (side * side * area));
        if (ratio > worst)
          break;
        [worst, sum] = [ratio, next];
        ++n;
      }
      const thick = sum / side;
      let along = 0;
      for (; i < n; ++i) {
        const length = items[i].bytes * scale / thick;
        cells.push(w >= h ? {item: items[i], x, y: y + along, w: thick, h: length} : {item: items[i], x: x + along, y, w: length, h: thick});
        along += length;
      }
      w >= h ? (x += thick, w -= thick) : (y += thick, h -= thick);
    }
    return cells;
  }
  draw(context, width, height) {
    this.cells = this.layout(width, height);
    for (const {item, x, y, w, h} of this.cells) {
      context.fillStyle = palette.of(item.role);
      context.fillRect(x + 0.5, y + 0.5, Math.max(w - 1, 0.4), Math.max(h - 1, 0.4));
      if (w > 44 && h > 18) {
        context.fillStyle = palette.of("on-fill");
        context.fillText(clipped(context, item.label, w - 12), x + 6, y + 12);
        if (h > 34)
          context.fillText(clipped(context, format.bytes(item.bytes), w - 12), x + 6, y + 27);
      }
      if (item === this.chosen) {
        context.strokeStyle = palette.of("focus");
        context.lineWidth = 3;
        context.strokeRect(x + 1.5, y + 1.5, Math.max(w - 3, 1), Math.max(h - 3, 1));
      }
    }
  }
  at(event) { return (this.cells || []).find(({x, y, w, h}) => event.offsetX >= x && event.offsetX < x + w && event.offsetY >= y && event.offsetY < y + h); }
  point(event) {
    const cell = this.at(event);
    cell ? tip.show(event.clientX, event.clientY, [cell.item.label, format.bytes(cell.item.bytes) + ", " + roleNames[cell.item.role], cell.item.part]) : tip.hide();
  }
}
