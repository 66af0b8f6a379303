// ---- What is shown: views, and details of what was chosen --------------------------------------------------------

const state = {
  tab: "overview",
  entry: Math.max(0, plan.entries.findIndex(entry => entry.name === "step")),
  selected: null,
};
const views = {}; // of each tab: {title, count, make() -> element, select(target)}
const built = {};

const entryChoice = rebuild => plan.entries.length > 1 &&
  choice("Entry", plan.entries.map((entry, i) => [i, entry.name]), state.entry, entry => { state.entry = entry; rebuild(); });
const currentEntry = () => plan.entries[state.entry];

const panel = (title, ...content) => el("section", {class: "panel"}, title && el("h2", {}, title), ...content);
const fillPanel = (title, ...content) => el("section", {class: "panel fill"}, title && el("h2", {}, title), ...content);

// Sums of what a task holds, by role.
function rolesOf(task) {
  const sums = {trained: 0, slot: 0, other: 0};
  for (const variable of plan.variables)
    sums[variable.role] += heldBytes(variable, task);
  return sums;
}

const stack = (parts, total) => el("span", {class: "stack", "aria-hidden": "true"}, parts.filter(([, bytes]) => bytes > 0).map(([color, bytes, text]) =>
  el("span", {title: text, style: {width: 100 * bytes / Math.max(total, 1) + "%", background: `var(--${color})`}})));

// ---- Overview ----------------------------------------------------------------------------------------------------------

views.overview = {
  title: "Overview",
  make() {
    const entry = currentEntry(), sentBy = plan.tasks.map(() => 0);
    for (const message of entry?.messages || [])
      if (message.among)
        sentBy.forEach((_, i) => sentBy[i] += message.bytes);
      else
        sentBy[message.from] += message.bytes;
    const most = maxOf(plan.tasks, task => task.variable_bytes + plan.arena_bytes * task.replicas);
    const tile = (value, text) => el("div", {class: "tile"}, el("b", {}, value), el("span", {}, text));
    const steps = measured.exists && entry ? measured.stepsOf(entry) : [];
    const tiles = el("div", {class: "tiles"},
      tile(format.count(plan.replicas), `replicas in ${format.many(plan.tasks.length, "task")}`),
      tile(format.bytes(plan.variables.filter(variable => variable.role === "trained").reduce((sum, variable) => sum + variable.bytes, 0)), "trained variables"),
      onDevices ? tile(format.bytes(plan.device_variable_bytes), "variables of a device") : tile(format.bytes(maxOf(plan.tasks, task => task.variable_bytes)), "variables of a task"),
      tile(format.bytes(plan.arena_bytes), "arena of a replica"),
      entry && tile(format.count(entry.operations.length), `operations of ${entry.name}`),
      entry && tile(format.time(entry.us), `estimated for ${entry.name}`),
      steps.length > 0 && tile(format.time(measured.stepOf(entry, measured.typical(entry)).us), `measured for ${entry.name}, median step`),
      entry && plan.tasks.length > 1 && tile(format.bytes(maxOf(sentBy)), "sent by a task in a step"));
    const cards = el("div", {class: "tasks"}, plan.tasks.map((task, i) => {
      const roles = rolesOf(i), arenas = plan.arena_bytes * task.replicas;
      return el("button", {class: "task", type: "button", onclick: () => select({kind: "task", task: i})},
        el("span", {class: "bar"}, el("b", {class: "mono"}, task.name), el("span", {class: "quiet"}, task.host),
          el("span", {class: "quiet"}, replicaText(task))),
        stack([...Object.entries(roles).map(([role, bytes]) => [role, bytes, `${roleNames[role]}: ${format.bytes(bytes)}`]), ["random", arenas, `arenas: ${format.bytes(arenas)}`]], most),
        el("span", {class: "quiet"}, `${format.bytes(task.variable_bytes)} variables, ${format.bytes(arenas)} arenas`));
    }));
    const shown = plan.remarks.slice(0, 4);
    const top = (items, size) => items.slice().sort((a, b) => size(b) - size(a)).slice(0, 8);
    const largest = top(plan.variables, variable => variable.bytes), longest = top(entry?.operations || [], operation => operation.end - operation.begin);
    const ranking = (title, rows, color) => rows.length > 0 && panel(title, el("ul", {class: "ranking"}, rows.map(([name, target, part, text]) =>
      el("li", {}, link(name, target, true), el("span", {class: "measure"}, el("span", {class: "meter", style: {width: 100 * part + "%", background: `var(--${color(target)})`}})), el("span", {class: "number"}, text)))));
    const categoryTimes = new Map();
    for (const operation of entry?.operations || [])
      categoryTimes.set(operation.category, (categoryTimes.get(operation.category) || 0) + operation.end - operation.begin);
    const byTime = [...categoryTimes].sort((a, b) => b[1] - a[1]);
    return el("div", {class: "view"}, tiles,
      panel("Tasks and what they hold", cards, legend([["trained", "trained"], ["slot", "optimizer slots"], ["other", "other state"], ["random", "arenas of its replicas"]])),
      entry && panel(`Where the time of ${entry.name} goes, as estimated`, stack(byTime.map(([category, us]) => [category, us, `${categoryName(category)}: ${format.time(us)}`]), entry.us),
        legend(byTime.map(([category, us]) => [category, `${categoryName(category)} ${format.time(us)} (${format.share(us / entry.us)})`]))),
      el("div", {class: "pair"},
        ranking("Largest variables", largest.map(variable => [variable.label, {kind: "variable", variable}, variable.bytes / Math.max(1, largest[0].bytes), format.bytes(variable.bytes)]), target => target.variable.role),
        ranking("Longest operations, as estimated", longest.map(operation => [operation.name, {kind: "operation", operation}, (operation.end - operation.begin) / (longest[0].end - longest[0].begin), format.time(operation.end - operation.begin)]), target => target.operation.category)),
      shown.length > 0 && panel("Remarks of the passes", shown.map(remarkRow), plan.remarks.length > shown.length && el("button", {class: "link", type: "button", onclick: () => show("remarks")}, `all ${plan.remarks.length} remarks`)));
  },
};

const replicaText = task => task.replicas === 0 ? "no replicas" : task.replicas === 1 ? "replica " + task.first_replica : `replicas ${task.first_replica}–${task.first_replica + task.replicas - 1}`;

// ---- Schedule --------------------------------------------------------------------------------------------------------

views.schedule = {
  title: "Schedule",
  make() {
    const entry = currentEntry();
    const chart = new ScheduleChart({label: `Schedule of ${entry.name}`, onopen: select});
    const steps = measured.exists ? measured.stepsOf(entry) : [];
    // Side by side where both are to be seen on one scale.
    const ratio = steps.length ? measured.stepOf(entry, measured.typical(entry)).us / Math.max(entry.us, 1e-9) : 0;
    let what = !steps.length ? "estimated" : ratio > 8 || ratio < 1 / 8 ? "measured" : "both", step = measured.typical(entry);
    const note = el("p", {class: "note"});
    const fill = () => {
      const lanes = [];
      let end = 0;
      if (what !== "measured") {
        end = maxOf(entry.buckets, bucket => bucket.end || 0, entry.us);
        lanes.push({label: steps.length ? "estimated" : "compute", items: entry.operations.map(operation => ({begin: operation.begin, end: operation.end, label: operation.name, color: operation.category,
          target: {kind: "operation", operation}, lines: () => operationLines(operation)}))});
        if (entry.buckets.length)
          lanes.push({label: "buckets", items: entry.buckets.filter(bucket => bucket.end !== undefined).map(bucket => ({begin: bucket.begin, end: bucket.end, label: `bucket ${bucket.number} · ${format.bytes(bucket.bytes)}`, color: "all_reduce",
            target: {kind: "bucket", bucket}, lines: () => bucketLines(bucket)}))});
      }
      if (what !== "estimated") {
        const found = measured.stepOf(entry, step);
        end = Math.max(end, found.us);
        for (const row of found.rows)
          lanes.push({label: row.label, items: row.events.map(event => ({begin: event.begin, end: event.end, label: event.name, color: categories.includes(event.category) ? event.category : "data", event,
            target: event.operation ? {kind: "operation", operation: event.operation} : event.bucket ? {kind: "bucket", bucket: event.bucket} : null,
            lines: () => [event.name, `${categoryName(event.category)}, measured ${format.time(event.end - event.begin)}`, event.operation && `estimated ${format.time(event.operation.end - event.operation.begin)}`]}))});
      }
      // The memory is told for the order of the plan; its times are those of the first lane.
      const first = lanes[0].items.filter(item => item.target?.kind === "operation");
      // Between two operations that were measured, the memory is the first one's.
      const spans = first.map((item, i) => [item.begin, first[i + 1]?.begin ?? item.end, entry.live[item.target.operation.number]]);
      chart.setLanes(lanes, end, {spans, most: maxOf(entry.live, bytes => bytes, 1)});
      const assumed = plan.assumed;
      note.textContent = (what === "measured" ? "" : `Estimates are for one replica, from shapes alone, with ${assumed.flops_per_s / 1e9} billion operations, ${format.bytes(assumed.memory_bytes_per_s)} of memory and ${format.bytes(assumed.sent_bytes_per_s)} of messages a second: they tell what is large, not how long it takes here. `) +
        (what === "estimated" ? measured.exists ? "" : "An executable's --timeline, given to distc compile --emit=html --timeline, adds the times measured." : `Measured: step ${step}${measured.clockText && ", " + measured.clockText}.`);
      highlight();
    };
    const highlight = () => {
      const target = state.selected;
      chart.chosen = null;
      if (target?.kind === "operation" && target.operation.entry === entry)
        chart.select(item => item.target?.operation === target.operation);
      else if (target?.kind === "bucket" && target.bucket.entry === entry)
        chart.select(item => item.target?.bucket === target.bucket);
      else if (target?.kind === "node")
        chart.select(item => item.target?.operation && target.node.operations.includes(item.target.operation));
      else if (target?.kind === "variable")
        chart.select(item => item.target?.operation && target.variable.operations.includes(item.target.operation));
      chart.redraw();
    };
    const used = categories.filter(category => entry.operations.some(operation => operation.category === category));
    const operationsTable = new Table({
      label: `Operations of ${entry.name}`, rows: entry.operations, sort: 0, descending: false, onopen: operation => select({kind: "operation", operation}),
      columns: [
        {title: "#", width: "56px", number: true, text: operation => operation.number, sort: operation => operation.number},
        {title: "operation", width: "minmax(240px, 4fr)", mono: true, text: operation => operation.name, sort: operation => operation.name},
        {title: "kind", width: "96px", text: operation => categoryName(operation.category), cell: operation => el("span", {class: "chip", style: {background: `var(--${operation.category})`}}, categoryName(operation.category)), sort: operation => operation.category},
        {title: "estimated", width: "84px", number: true, text: operation => format.time(operation.end - operation.begin), sort: operation => operation.end - operation.begin},
        ...(steps.length ? [{title: "measured", width: "84px", number: true, text: operation => { const mean = measured.meanOf(operation); return mean === undefined ? "" : format.time(mean); }, sort: operation => measured.meanOf(operation) ?? -1}] : []),
        {title: "computes", width: "84px", number: true, text: operation => operation.flops ? short(operation.flops) : "", sort: operation => operation.flops || 0},
        {title: "writes", width: "84px", number: true, text: operation => operation.writes ? format.bytes(operation.writes) : "", sort: operation => operation.writes || 0},
        ...(entry.operations.some(remarkCount) ? [{title: "remarks", width: "70px", number: true, text: operation => remarkCount(operation) || "", sort: remarkCount}] : []),
      ],
    });
    fill();
    this.select = () => {
      highlight();
      const target = state.selected, operation = target?.operation || target?.node?.operations.find(candidate => candidate.entry === entry) || target?.bucket?.operations[0];
      if (operation?.entry === entry)
        operationsTable.arrange(operation);
    };
    return el("div", {class: "view"},
      panel("", el("div", {class: "bar"}, entryChoice(() => rebuild("schedule")),
        steps.length > 0 && toggle("Times", [["both", "Both"], ["estimated", "Estimated"], ["measured", "Measured"]], what, chosen => { what = chosen; fill(); }),
        steps.length > 0 && choice("Step", steps.map(number => [number, `${number} · ${format.time(measured.stepOf(entry, number).us)}`]), step, chosen => { step = chosen; if (what === "estimated") what = "both"; fill(); }),
        el("span", {class: "grow"}), chart.buttons()),
        el("div", {style: {margin: "10px 0 0"}}, chart.element), legend(used.map(category => [category, categoryName(category)])), el("div", {style: {height: "8px"}}), note),
      fillPanel("Operations in order", operationsTable.element));
  },
};

const remarkCount = operation => (operation.nodes || []).reduce((sum, name) => sum + nodes.get(name).remarks.length, 0);
const short = number => {
  const units = ["", " k", " M", " G", " T", " P"];
  let unit = 0;
  for (; number >= 1000 && unit < 5; ++unit)
    number /= 1000;
  return (unit ? number.toPrecision(3) : Math.round(number)) + units[unit];
};
const operationLines = operation => [operation.name, `${categoryName(operation.category)}, estimated ${format.time(operation.end - operation.begin)}`, operation.writes ? "writes " + format.bytes(operation.writes) : ""];
const bucketLines = bucket => [`bucket ${bucket.number}: ${kinds[bucket.kind]}`, `${format.bytes(bucket.bytes)} of ${format.many(bucket.members.length, "variable")}`];

// ---- Memory ------------------------------------------------------------------------------------------------------------

views.memory = {
  title: "Memory",
  make() {
    const entry = currentEntry(), shown = el("h2", {}), most = maxOf(entry.live, bytes => bytes, 1);
    const openBlock = block => select(block.variable !== undefined ? {kind: "variable", variable: plan.variables[block.variable]} : block.operation !== undefined ? {kind: "operation", operation: entry.operations[block.operation]} : {kind: "bucket", bucket: entry.bucketByNumber.get(block.bucket)});
    const table = new Table({
      label: "In use", rows: [], sort: 1, onopen: openBlock,
      columns: [
        {title: "block", width: "minmax(120px, 1fr)", mono: true, text: block => blockName(entry, block), sort: block => blockName(entry, block)},
        {title: "bytes", width: "76px", number: true, text: block => format.bytes(block.bytes), sort: block => block.bytes},
      ],
    });
    const oncursor = at => {
      const operation = entry.operations[at];
      if (!operation)
        return;
      shown.textContent = `${format.bytes(entry.live[at])} in use at #${at}${entry.live[at] === most ? ", the most" : ""}`;
      where.textContent = operation.name;
      table.setRows(entry.blocks.filter(block => block.begin <= at && at <= block.end));
    };
    const where = el("p", {class: "note mono", style: {overflowWrap: "anywhere", marginBottom: "8px"}});
    const chart = new MemoryChart({label: `Arena of ${entry.name}`, entry, oncursor, onopen: openBlock});
    oncursor(chart.cursor);
    this.select = () => {
      const target = state.selected, operation = target?.operation || target?.node?.operations.find(candidate => candidate.entry === entry);
      if (operation?.entry === entry) {
        chart.chosen = chart.blocks.find(block => block.operation === operation.number)?.number;
        chart.setCursor(operation.number);
      } else if (target?.bucket?.entry === entry) {
        chart.chosen = chart.blocks.find(block => block.bucket === target.bucket.number)?.number;
        chart.redraw();
      }
    };
    const used = categories.filter(category => chart.blocks.some(block => block.color === category));
    return el("div", {class: "view"},
      el("div", {class: "columns"},
        el("section", {class: "panel tall"}, el("div", {class: "bar"}, entryChoice(() => rebuild("memory")),
          el("span", {class: "quiet"}, `${format.bytes(most)} in use at most, of ${format.bytes(maxOf(entry.blocks, block => block.at + block.bytes))} in ${format.many(entry.blocks.length, "block")}; a replica's arena has ${format.bytes(plan.arena_bytes)}`),
          el("span", {class: "grow"}), chart.buttons()),
          el("div", {class: "tall", style: {margin: "10px 0 0"}}, chart.element),
          legend(used.map(category => [category, category === "all_reduce" ? "bucket" : categoryName(category)])),
          el("p", {class: "note", style: {marginTop: "8px"}}, "Upwards: addresses of one replica's arena. To the right: operations in order. A block's memory is its own from the operation that writes it to the last that reads it.")),
        el("section", {class: "panel fill", style: {minHeight: "260px"}}, shown, where, table.element)));
  },
};

// ---- Variables ---------------------------------------------------------------------------------------------------------

views.variables = {
  title: "Variables",
  count: plan.variables.length,
  make() {
    let role = "all", text = "";
    const largest = maxOf(plan.variables, variable => variable.bytes, 1);
    const columns = [
      {title: "variable", width: "minmax(200px, 4fr)", mono: true, text: variable => variable.name, sort: variable => variable.label},
      ...(plan.variables.some(variable => variable.part !== "whole") ? [{title: "part", width: "minmax(90px, 2fr)", text: variable => variable.part, sort: variable => variable.part}] : []),
      {title: "type", width: "70px", text: variable => variable.type, sort: variable => variable.type},
      {title: "shape", width: "minmax(104px, 1.2fr)", text: variable => format.shape(variable.shape)},
      {title: "bytes", width: "78px", number: true, text: variable => format.bytes(variable.bytes), sort: variable => variable.bytes},
      {title: "", width: "minmax(40px, 1fr)", cell: variable => meterCell(variable.bytes / largest, "")},
      {title: "held by", width: "96px", text: holder, sort: holder},
      {title: "role", width: "112px", text: variable => roleNames[variable.role], cell: variable => el("span", {class: "chip", style: {background: `var(--${variable.role})`}}, roleNames[variable.role]), sort: variable => variable.role},
      {title: "synchronized", width: "104px", text: variable => [...new Set(variable.buckets.map(bucket => "bucket " + bucket.number))].join(", "), sort: variable => variable.buckets[0]?.number ?? 1e9},
    ];
    const open = variable => select({kind: "variable", variable});
    const map = new Treemap({label: "Variables by bytes", items: plan.variables, onopen: open});
    const table = new Table({label: "Variables", columns, rows: plan.variables, sort: columns.findIndex(column => column.title === "bytes"), onopen: open});
    const fill = () => {
      const words = text.toLowerCase().split(/\s+/).filter(word => word);
      const rows = plan.variables.filter(variable => (role === "all" || variable.role === role) && words.every(word => variable.label.toLowerCase().includes(word)));
      map.setItems(rows);
      table.setRows(rows, state.selected?.variable);
      sum.textContent = `${format.many(rows.length, "variable")}, ${format.bytes(rows.reduce((all, variable) => all + variable.bytes, 0))}`;
    };
    const sum = el("span", {class: "quiet"});
    const filter = el("input", {type: "text", "aria-label": "Filter variables", placeholder: "Filter", oninput: () => { text = filter.value; fill(); }});
    fill();
    this.select = () => {
      if (state.selected?.kind === "variable") {
        map.select(state.selected.variable);
        table.arrange(state.selected.variable);
      }
    };
    const roles = Object.keys(roleNames).filter(name => plan.variables.some(variable => variable.role === name));
    return el("div", {class: "view"},
      panel("", el("div", {class: "bar"}, toggle("Role", [["all", "All"], ...roles.map(name => [name, roleNames[name][0].toUpperCase() + roleNames[name].slice(1)])], role, chosen => { role = chosen; fill(); }), filter, sum),
        el("div", {style: {margin: "10px 0 0"}}, map.element), legend(roles.map(name => [name, roleNames[name]]))),
      fillPanel("", table.element));
  },
};

// ---- Messages ----------------------------------------------------------------------------------------------------------

views.messages = {
  title: "Messages",
  make() {
    const entry = currentEntry(), n = plan.tasks.length;
    let only = null;
    const matrix = el("div", {class: "matrix"});
    const fill = () => {
      const sent = plan.tasks.map(() => new Array(n).fill(0)), all = [];
      for (const message of entry.messages) {
        if (only !== null && message.bucket !== only)
          continue;
        message.among ? all.push(message) : sent[message.from][message.to] += message.bytes;
      }
      const among = all.reduce((sum, message) => sum + message.bytes, 0), most = maxOf(sent.flat(), bytes => bytes, Math.max(1, among));
      const cell = (bytes, text, open) => el("td", {}, bytes ? el("button", {type: "button", "aria-label": `${text}: ${format.bytes(bytes)}`, style: {"--share": 12 + 60 * bytes / most + "%"}, onclick: open}, format.bytes(bytes)) : el("span", {}, "–"));
      matrix.replaceChildren(el("table", {},
        el("thead", {}, el("tr", {}, el("th", {scope: "col"}, "from \\ to"), plan.tasks.map(task => el("th", {scope: "col"}, task.name)), all.length > 0 && el("th", {scope: "col"}, "all-reduce of all"))),
        el("tbody", {}, plan.tasks.map((from, i) => el("tr", {}, el("th", {scope: "row"}, from.name),
          plan.tasks.map((to, j) => i === j ? el("td") : cell(sent[i][j], `${from.name} to ${to.name}`, () => select({kind: "task", task: i}))),
          all.length > 0 && cell(among, `${from.name} contributes`, () => select({kind: "task", task: i})))))));
    };
    const table = new Table({
      label: `Buckets of ${entry.name}`, rows: entry.buckets, sort: 0, descending: false, onopen: bucket => select({kind: "bucket", bucket}),
      columns: [
        {title: "bucket", width: "70px", number: true, text: bucket => bucket.number, sort: bucket => bucket.number},
        {title: "kind", width: "minmax(120px, 1fr)", text: bucket => kinds[bucket.kind], sort: bucket => kinds[bucket.kind]},
        {title: "gives", width: "70px", text: bucket => bucket.reduction || "", sort: bucket => bucket.reduction || ""},
        {title: "bytes", width: "84px", number: true, text: bucket => format.bytes(bucket.bytes), sort: bucket => bucket.bytes},
        {title: "type", width: "76px", text: bucket => bucket.type || ""},
        {title: "variables", width: "78px", number: true, text: bucket => bucket.members.length, sort: bucket => bucket.members.length},
        {title: "starts", width: "84px", number: true, text: bucket => bucket.begin === undefined ? "" : format.time(bucket.begin), sort: bucket => bucket.begin || 0},
        {title: "of", width: "minmax(200px, 4fr)", mono: true, text: bucket => bucket.members.slice(0, 12).map(member => member.name).join(", ")},
      ],
    });
    if (n > 1)
      fill();
    this.select = () => {
      const bucket = state.selected?.bucket;
      if (bucket?.entry === entry)
        table.arrange(bucket);
    };
    return el("div", {class: "view"},
      panel("Between tasks, in a step",
        n > 1 ? [el("div", {class: "bar", style: {marginBottom: "8px"}}, entryChoice(() => rebuild("messages")),
          entry.buckets.length > 1 && choice("Bucket", [[null, "all"], ...entry.buckets.map(bucket => [bucket.number, `${bucket.number} · ${kinds[bucket.kind]}`])], only, chosen => { only = chosen; fill(); })), matrix,
        el("p", {class: "note", style: {marginTop: "8px"}}, "What goes from a task (row) to another (column). An all-reduce is of all tasks: its column says what each contributes and receives, before compression; how it travels is chosen when the tasks have met.")]
          : el("p", {class: "note"}, onDevices ? "There is one task: nothing is sent to another. Its devices synchronize buckets among them." : "There is one task: its replicas share memory, and nothing is sent. Buckets are what they synchronize."),
        plan.servers && el("p", {class: "note", style: {marginTop: "8px"}}, servingText()),
        plan.accumulate_steps && el("p", {class: "note", style: {marginTop: "8px"}}, `An update takes ${plan.accumulate_steps} batches.`)),
      entry.buckets.length === 0 ? panel("Buckets", el("p", {class: "note"}, `There are none in ${entry.name}.`)) : fillPanel(`Buckets of ${entry.name}, in the order in which they start`, table.element));
  },
};

// ---- Nodes -------------------------------------------------------------------------------------------------------------

views.nodes = {
  title: "Nodes",
  count: nodes.size,
  make() {
    const entry = currentEntry(), root = makeScopes(entry), children = new Map();
    const below = scope => {
      if (!children.has(scope))
        children.set(scope, [...scope.children.values()]);
      return children.get(scope);
    };
    const open = scope => nodes.has(scope.path) ? select({kind: "node", node: nodes.get(scope.path)}) : select({kind: "scope", scope, entry});
    const table = new Table({
      label: `Nodes of ${entry.name} by scope`, rows: below(root), sort: 1, children: below, onopen: open,
      columns: [
        {title: "scope or node", width: "minmax(220px, 4fr)", mono: true, text: scope => scope.name, cell: scope => el("span", {title: scope.path}, scope.name + (scope.children.size ? "/" : "")), sort: scope => scope.name},
        {title: "estimated", width: "88px", number: true, text: scope => format.time(scope.us), sort: scope => scope.us},
        {title: "", width: "minmax(50px, 1fr)", cell: scope => meterCell(scope.us / Math.max(root.us, 1e-9), format.share(scope.us / Math.max(root.us, 1e-9)))},
        {title: "computes", width: "84px", number: true, text: scope => short(scope.flops), sort: scope => scope.flops},
        {title: "writes", width: "84px", number: true, text: scope => format.bytes(Math.round(scope.writes)), sort: scope => scope.writes},
        {title: "operations", width: "88px", number: true, text: scope => format.count(scope.operations), sort: scope => scope.operations},
        {title: "remarks", width: "70px", number: true, text: scope => scope.remarks || "", sort: scope => scope.remarks},
      ],
    });
    if (root.children.size === 1) {
      table.opened.add(below(root)[0].path);
      table.arrange();
    }
    this.select = () => {
      const name = state.selected?.node?.name || state.selected?.operation?.nodes?.[0];
      if (!name)
        return;
      let scope = root;
      for (const part of name.split("/")) {
        if (scope !== root)
          table.opened.add(scope.path);
        scope = scope?.children.get(part);
        if (!scope)
          return;
      }
      table.arrange(scope);
    };
    return el("div", {class: "view"}, fillPanel("", el("div", {class: "bar", style: {marginBottom: "10px"}}, entryChoice(() => rebuild("nodes")),
      el("span", {class: "quiet"}, "Nodes of the graph that run, by the scopes of their names. Of an operation that several nodes became, each has an even part.")), table.element));
  },
};

// ---- Remarks -----------------------------------------------------------------------------------------------------------

function remarkRow(remark) {
  return el("div", {class: "remark"}, el("span", {class: "badge " + remark.severity}, remark.severity),
    el("div", {}, el("div", {}, remark.text), [...remark.names].map(name => link(name, targetOf(name), true)).filter(entry => entry).flatMap(entry => [entry, " "])));
}

views.remarks = {
  title: "Remarks",
  count: plan.remarks.length,
  make: () => el("div", {class: "view"}, panel("What the passes said", plan.remarks.length ? plan.remarks.map(remarkRow) : el("p", {class: "note"}, "Nothing: no pass had a remark or a warning."))),
};

// ---- Details -----------------------------------------------------------------------------------------------------------

function targetOf(name) {
  if (variableNumbers.has(name))
    return {kind: "variable", variable: plan.variables[variableNumbers.get(name)[0]]};
  return nodes.has(name) ? {kind: "node", node: nodes.get(name)} : null;
}
const link = (text, target, mono) => target && el("button", {class: "link" + (mono ? " mono" : ""), type: "button", onclick: () => select(target)}, breakable(text));

const facts = rows => el("dl", {}, rows.filter(row => row && row[1] !== undefined && row[1] !== null && row[1] !== "").flatMap(([term, value]) => [el("dt", {}, term), el("dd", {}, value)]));
// Long lists show their first entries until they are asked for more.
function links(title, entries, shown = 12) {
  if (!entries.length)
    return [];
  const list = el("ul", {class: "links"});
  const add = rows => list.append(...rows.map(([text, target, fact]) => el("li", {}, link(text, target, true) || el("span", {class: "mono"}, breakable(text)), fact && el("span", {class: "quiet"}, fact))));
  add(entries.slice(0, shown));
  const more = entries.length > shown && el("button", {class: "link", type: "button", onclick: () => { more.remove(); add(entries.slice(shown)); }}, `${entries.length - shown} more`);
  return [el("h3", {}, title), list, more];
}
const operationLinks = operations => operations.map(operation => [operation.name, {kind: "operation", operation}, operation.entry.name + " · " + format.time(operation.end - operation.begin)]);
const remarkList = remarks => remarks.length ? [el("h3", {}, "Remarks"), remarks.map(remark => el("div", {class: "remark"}, el("span", {class: "badge " + remark.severity}, remark.severity), el("div", {}, remark.text)))] : [];

const details = {
  task({task: i}) {
    const task = plan.tasks[i], roles = rolesOf(i);
    const held = plan.variables.filter(variable => heldBytes(variable, i) > 0).sort((a, b) => heldBytes(b, i) - heldBytes(a, i));
    return [task.name, "task", facts([["host", task.host], ["replicas", replicaText(task)], ["variables", format.bytes(task.variable_bytes)],
      ...Object.entries(roles).map(([role, bytes]) => [roleNames[role], bytes ? format.bytes(bytes) : ""]), ["arenas", format.bytes(plan.arena_bytes * task.replicas)]]),
      links("Held by it alone", held.filter(variable => variable.owner === i).map(variable => [variable.label, {kind: "variable", variable}, format.bytes(variable.bytes)])),
      links("Largest", held.map(variable => [variable.label, {kind: "variable", variable}, format.bytes(heldBytes(variable, i))]))];
  },
  variable({variable}) {
    const parts = plan.variables.filter(other => other.name === variable.name && other !== variable), slots = plan.variables.filter(other => other.slot_of === variable.number);
    return [variable.label, "variable", facts([["type", `${variable.type} ${format.shape(variable.shape)}`], ["bytes", format.bytes(variable.bytes)], ["part", variable.part], ["held by", holder(variable)],
      ["role", roleNames[variable.role]], ["slot of", variable.slot_of !== undefined ? link(plan.variables[variable.slot_of].label, {kind: "variable", variable: plan.variables[variable.slot_of]}, true) : ""],
      ["checkpoints", variable.saved ? "saved" : "not saved"]]),
      links("Synchronized in", variable.buckets.map(bucket => [`bucket ${bucket.number} of ${bucket.entry.name}`, {kind: "bucket", bucket}, kinds[bucket.kind]])),
      links("Slots", slots.map(other => [other.label, {kind: "variable", variable: other}, format.bytes(other.bytes)])),
      links("Other parts", parts.map(other => [other.label, {kind: "variable", variable: other}, holder(other)])),
      links("Read or updated by", operationLinks(variable.operations.filter(operation => operation.entry.name !== "init"))), remarkList(remarksOf([variable.name, variable.symbol]))];
  },
  operation({operation}) {
    const entry = operation.entry, bucket = entry.bucketByNumber.get(operation.bucket), mean = measured.exists ? measured.meanOf(operation) : undefined;
    const block = entry.blocks.find(candidate => candidate.operation === operation.number);
    return [operation.name, `operation #${operation.number} of ${entry.name}`, facts([
      ["kind", el("span", {class: "chip", style: {background: `var(--${operation.category})`}}, categoryName(operation.category))], ["is", el("span", {class: "mono"}, operation.operation)],
      ["kernel", operation.kernel && el("span", {class: "mono"}, operation.kernel)], ["estimated", format.time(operation.end - operation.begin)],
      ["measured", mean !== undefined ? format.time(mean) + ", mean of steps and replicas" : ""], ["computes", operation.flops ? short(operation.flops) + " operations" : ""],
      ["moves", operation.moves ? format.bytes(operation.moves) : ""], ["writes", operation.writes ? format.bytes(operation.writes) : ""],
      ["in the arena", operation.at !== undefined ? "at " + format.count(operation.at) : ""], ["in use until", block && `#${block.end} ${entry.operations[block.end]?.name || ""}`],
      ["bucket", bucket && link(`bucket ${bucket.number}`, {kind: "bucket", bucket})]]),
      links("Nodes", (operation.nodes || []).map(name => [name, {kind: "node", node: nodes.get(name)}])),
      links("Variables", (operation.variables || []).map(number => [plan.variables[number].label, {kind: "variable", variable: plan.variables[number]}, format.bytes(plan.variables[number].bytes)])),
      remarkList(remarksOf(operation.nodes || []))];
  },
  bucket({bucket}) {
    const messages = bucket.entry.messages.filter(message => message.bucket === bucket.number);
    const named = member => member.variables.length ? {kind: "variable", variable: plan.variables[member.variables[0]]} : null;
    return [`bucket ${bucket.number}`, `of ${bucket.entry.name}`, facts([["kind", kinds[bucket.kind]], ["gives", bucket.reduction], ["bytes", format.bytes(bucket.bytes)], ["type", bucket.type],
      ["compression", bucket.compression], ["aggregator", bucket.aggregator], ["travels", bucket.begin !== undefined ? `${format.time(bucket.begin)} to ${format.time(bucket.end)}, estimated` : ""],
      ["in the arena", bucket.at !== undefined ? "at " + format.count(bucket.at) : ""]]),
      links("Members", bucket.members.map(member => [member.name, named(member), format.bytes(member.bytes) + (member.owner !== undefined ? " · " + plan.tasks[member.owner].name : "")])),
      links("Messages", messages.map(message => message.among ? [`among all ${message.among} tasks`, null, format.bytes(message.bytes)] : [`${plan.tasks[message.from].name} → ${plan.tasks[message.to].name}`, {kind: "task", task: message.from}, format.bytes(message.bytes)])),
      links("Operations", operationLinks(bucket.operations)), remarkList(remarksOf(bucket.members.map(member => member.name)))];
  },
  node({node}) {
    const touched = [...new Set(node.operations.flatMap(operation => operation.variables || []))];
    return [node.name, "node of the graph", node.operations.length === 0 && el("p", {class: "note", style: {marginTop: "12px"}}, "It runs as no operation of its own: it was folded, or others have its work."), links("Runs in", operationLinks(node.operations)),
      links("Variables", touched.map(number => [plan.variables[number].label, {kind: "variable", variable: plan.variables[number]}, format.bytes(plan.variables[number].bytes)])), remarkList(remarksOf([node.name]))];
  },
  scope({scope, entry}) {
    const below = [...scope.children.values()].sort((a, b) => b.us - a.us);
    return [scope.path + "/", `scope in ${entry.name}`, facts([["estimated", format.time(scope.us)], ["computes", short(scope.flops) + " operations"], ["writes", format.bytes(Math.round(scope.writes))], ["operations", format.count(scope.operations)]]),
      links("In it", below.map(child => [child.name + (child.children.size ? "/" : ""), nodes.has(child.path) ? {kind: "node", node: nodes.get(child.path)} : {kind: "scope", scope: child, entry}, format.time(child.us)]))];
  },
};

// Where each kind of thing is shown best, if the view at hand does not show it.
const homes = {task: ["overview", "messages"], variable: ["variables", "schedule"], operation: ["schedule", "memory", "nodes"], bucket: ["messages", "schedule", "memory"], node: ["nodes", "schedule", "memory"], scope: ["nodes"]};

let cameFrom = null;
function select(target, options = {}) {
  state.selected = target;
  const aside = byId("details"), [name, kind, ...content] = details[target.kind](target);
  if (aside.hidden || !aside.contains(document.activeElement))
    cameFrom = document.activeElement;
  const inside = aside.contains(document.activeElement);
  aside.replaceChildren(el("div", {class: "top"}, el("div", {}, el("h2", {}, breakable(name)), el("span", {class: "quiet"}, kind)), el("button", {class: "close", type: "button", "aria-label": "Close details", onclick: closeDetails}, "×")),
    ...content.flat(3).filter(child => child));
  aside.scrollTop = 0;
  aside.hidden = false;
  if (options.go && !homes[target.kind].includes(state.tab)) {
    const entry = target.operation?.entry || target.bucket?.entry;
    if (entry && entry.number !== state.entry)
      setEntry(entry.number);
    show(homes[target.kind][0]);
  }
  views[state.tab].select?.();
  if (options.go || inside)
    aside.focus();
  say(`${kind} ${name}`);
}

function closeDetails() {
  byId("details").hidden = true;
  state.selected = null;
  (cameFrom?.isConnected ? cameFrom : byId("tab-" + state.tab)).focus();
}

// ---- Tabs --------------------------------------------------------------------------------------------------------------

function setEntry(number) {
  state.entry = number;
  for (const name of Object.keys(built))
    delete built[name];
}

function rebuild(name) {
  setEntry(state.entry);
  show(name);
  byId("views").querySelector("select")?.focus();
}

function show(name) {
  state.tab = name;
  for (const tab of byId("tabs").children) {
    const chosen = tab.id === "tab-" + name;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    if (chosen)
      tab.scrollIntoView({block: "nearest", inline: "nearest"});
  }
  const views_ = byId("views");
  if (!built[name]) {
    charts.clear();
    Object.keys(built).forEach(other => built[other].charts.forEach(chart => charts.add(chart)));
    const before = new Set(charts);
    const element = views[name].make();
    built[name] = {element: el("div", {role: "tabpanel", id: "panel-" + name, "aria-labelledby": "tab-" + name, style: {height: "100%"}}, element), charts: [...charts].filter(chart => !before.has(chart))};
  }
  views_.replaceChildren(built[name].element);
  views_.scrollTop = 0;
  views[name].select?.();
  tip.hide();
}

function start() {
  byId("title").textContent = plan.graph.split("/").slice(-2).join("/");
  byId("title").title = plan.graph;
  byId("summary").textContent = [`strategy ${plan.strategy}`, `${format.many(plan.replicas, "replica")} in ${format.many(plan.tasks.length, "task")}`, plan.global_batch ? `global batch ${plan.global_batch}` : "no batched feed", `target ${plan.target}`].join(" · ");
  const names = Object.keys(views).filter(name => plan.entries.length || ["overview", "variables", "remarks"].includes(name));
  byId("tabs").append(...names.map(name => el("button", {id: "tab-" + name, type: "button", role: "tab", "aria-controls": "panel-" + name, onclick: () => show(name), onkeydown: event => {
    const i = names.indexOf(name), to = {ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: names.length - 1}[event.key];
    if (to === undefined)
      return;
    event.preventDefault();
    const next = names[(to + names.length) % names.length];
    show(next);
    byId("tab-" + next).focus();
  }}, views[name].title, views[name].count ? el("span", {class: "count"}, format.count(views[name].count)) : null)));
  byId("help").addEventListener("click", () => byId("keys").showModal());
  document.addEventListener("keydown", event => {
    if (event.key === "?" && !/^(INPUT|SELECT)$/.test(document.activeElement.tagName))
      byId("keys").showModal();
    else if (event.key === "Escape" && !byId("keys").open && !byId("details").hidden && document.activeElement !== byId("search"))
      closeDetails();
  });
  startSearch(target => select(target, {go: true}));
  show(names[0]);
}
start();
