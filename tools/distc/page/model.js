// ---- The document, and what follows from it ----------------------------------------------------------------------

const plan = JSON.parse(document.getElementById("plan").textContent);

const format = {
  bytes(bytes) {
    const units = ["B", "kB", "MB", "GB", "TB"];
    let unit = 0;
    for (; bytes >= 1000 && unit < 4; ++unit)
      bytes /= 1000;
    return (unit ? bytes.toFixed(1) : bytes) + " " + units[unit];
  },
  time(us) {
    if (us === 0)
      return "0";
    const [value, unit] = us < 1 ? [us * 1e3, "ns"] : us < 1e3 ? [us, "µs"] : us < 1e6 ? [us / 1e3, "ms"] : [us / 1e6, "s"];
    return value.toPrecision(3).replace(/e\+?(\d+)/, (_, e) => "0".repeat(Number(e) - 2)) + " " + unit;
  },
  count: number => number.toLocaleString("en").replaceAll(",", " "),
  many: (number, one, more) => format.count(number) + " " + (number === 1 ? one : more || one + "s"),
  shape: shape => "(" + shape.join(", ") + (shape.length === 1 ? ",)" : ")"),
  share: part => (100 * part).toFixed(part >= 0.1 ? 0 : 1) + " %",
};

// No arguments of a call: lists may have more items than a call may have arguments.
const maxOf = (items, of = item => item, least = 0) => items.reduce((most, item) => Math.max(most, of(item)), least);

const kinds = {
  all_reduce: "all-reduce", reduce_scatter: "reduce-scatter", gather: "gather of shares", gather_rows: "gather of rows",
  push: "push to servers", pull: "pull from servers", push_rows: "rows pushed to owners", pull_rows: "rows pulled from owners",
};
const categories = ["kernel", "matmul", "conv", "pool", "random", "rows", "routine", "copy", "update", "accumulate", "all_reduce", "server"];
const categoryName = category => category.replace("_", "-");
const roleNames = {trained: "trained", slot: "optimizer slots", other: "other state"};

plan.variables.forEach((variable, i) => {
  variable.number = i;
  variable.role = variable.slot_of !== undefined ? "slot" : variable.trained ? "trained" : "other";
  variable.operations = [];
  variable.buckets = [];
  // A whole variable has its name; shards have their symbols, which are different.
  variable.label = variable.name;
  if (variable.begin)
    variable.part = "[" + variable.begin.map((begin, axis) => begin + ":" + (begin + variable.shape[axis])).join(", ") + "] of " + format.shape(variable.full_shape);
  else if (variable.shares)
    variable.part = "one of " + variable.shares + " shares of " + format.shape(variable.full_shape);
  else
    variable.part = "whole";
  if (variable.begin)
    variable.label += " [" + variable.begin.map((begin, axis) => variable.shape[axis] === variable.full_shape[axis] ? "" : begin + ":" + (begin + variable.shape[axis])).filter(text => text).join(", ") + "]";
});
// Replicas on devices have memory of their own; those of processors hold shares apart, and all else together.
const onDevices = plan.device_variable_bytes !== undefined;
// What a variable takes in a task.
const heldBytes = (variable, task) => {
  if (variable.owner !== undefined && variable.owner !== task)
    return 0;
  return variable.bytes * (variable.shares || onDevices ? plan.tasks[task].replicas : 1);
};
const holder = variable => variable.owner !== undefined ? plan.tasks[variable.owner].name : plan.tasks.length === 1 ? plan.tasks[0].name : "every task";

const variableNumbers = new Map();
plan.variables.forEach(variable => {
  for (const name of [variable.name, variable.symbol])
    if (!variableNumbers.has(name))
      variableNumbers.set(name, []);
  for (const name of new Set([variable.name, variable.symbol]))
    variableNumbers.get(name).push(variable.number);
});

const nodes = new Map(); // name -> {name, operations, remarks}
const nodeOf = name => {
  let node = nodes.get(name);
  if (!node)
    nodes.set(name, node = {name, operations: [], remarks: []});
  return node;
};

plan.entries.forEach((entry, e) => {
  entry.number = e;
  entry.bucketByNumber = new Map(entry.buckets.map(bucket => [bucket.number, bucket]));
  for (const bucket of entry.buckets) {
    bucket.entry = entry;
    bucket.operations = [];
    bucket.members.forEach(member => {
      member.variables = variableNumbers.get(member.name) || [];
      member.variables.forEach(number => plan.variables[number].buckets.push(bucket));
    });
  }
  entry.operations.forEach((operation, i) => {
    operation.entry = entry;
    operation.number = i;
    (operation.variables || []).forEach(number => plan.variables[number].operations.push(operation));
    (operation.nodes || []).forEach(name => nodeOf(name).operations.push(operation));
    if (operation.bucket !== undefined && entry.bucketByNumber.has(operation.bucket))
      entry.bucketByNumber.get(operation.bucket).operations.push(operation);
  });
  schedule(entry);
  entry.live = liveBytes(entry);
});

plan.remarks.forEach(remark => {
  // A remark speaks of its node, of what it quotes, and of the variables that it lists. (A node may have any word's name.)
  remark.names = new Set(remark.node ? [remark.node] : []);
  for (const [, name] of remark.text.matchAll(/'([^']+)'/g))
    for (const candidate of [name, name.replace(/:\d+$/, "")])
      if (nodes.has(candidate) || variableNumbers.has(candidate))
        remark.names.add(candidate);
  for (const [word] of remark.text.matchAll(/[^\s,;:'"()]+/g))
    if (variableNumbers.has(word))
      remark.names.add(word);
  for (const name of remark.names)
    if (nodes.has(name) || name === remark.node && !variableNumbers.has(name))
      nodeOf(name).remarks.push(remark);
});
const remarksOf = names => plan.remarks.filter(remark => names.some(name => remark.names.has(name)));

// Times from the plan's estimates: one replica computes in the order of the plan, buckets travel one after the other
// beside it, and a wait waits.
function schedule(entry) {
  const assumed = plan.assumed;
  let now = 0, free = 0;
  for (const operation of entry.operations) {
    operation.begin = now;
    now += operation.us;
    const bucket = entry.bucketByNumber.get(operation.bucket);
    if (bucket && /_(start|rows)$/.test(operation.operation)) {
      const n = plan.tasks.length, all = bucket.kind === "all_reduce";
      const seconds = n > 1 ? bucket.bytes * (all ? 2 * (n - 1) / n : 1) / assumed.sent_bytes_per_s : bucket.bytes * plan.replicas / assumed.memory_bytes_per_s;
      bucket.begin = Math.max(now, free);
      free = bucket.end = bucket.begin + seconds * 1e6;
    }
    // Rows are waited for where they are asked for.
    if (bucket && /_(wait|rows)$/.test(operation.operation))
      now = Math.max(now, bucket.end);
    operation.end = now;
  }
  entry.us = now;
}

// Bytes of the arena in use while each operation runs.
function liveBytes(entry) {
  const change = new Float64Array(entry.operations.length + 1);
  for (const block of entry.blocks) {
    change[block.begin] += block.bytes;
    change[block.end + 1] -= block.bytes;
  }
  let now = 0;
  return Array.from(entry.operations, (_, i) => now += change[i]);
}

const blockName = (entry, block) => block.variable !== undefined ? plan.variables[block.variable].label : block.bucket !== undefined ? "bucket " + block.bucket : block.operation !== undefined ? entry.operations[block.operation].name : "memory";
// When servers serve on their own: what an update is made of, and who waits.
const servingText = () => {
  const {required, staleness, async, gradients} = plan.servers;
  return `Servers in the replicas' process are pushed ${format.many(gradients, "gradient")} a step. ` +
    (async ? "Every gradient is an update of its own, and no replica waits."
      : required === plan.replicas ? `An update takes a gradient of each replica, which may be ${format.many(staleness, "step")} ahead of the slowest.`
        : `An update takes the first ${required} gradients that are at most ${format.many(staleness, "update")} late; others are dropped.`);
};

const blockCategory = (entry, block) => block.operation !== undefined ? entry.operations[block.operation].category : "all_reduce";

// ---- Times that were measured --------------------------------------------------------------------------------------

// Of the timelines: steps, and for a step the rows of events, each with the operation of the plan that it is of.
const measured = (() => {
  const rows = [], steps = new Map();
  // What the clocks of tasks that are in one file may differ by, in microseconds; none where each has a file of its own.
  let uncertainty;
  plan.timelines.forEach((timeline, file) => {
    const first = rows.length;
    const aligned = new Map(timeline.tasks.map(task => [task.name, task.uncertainty_us]));
    if (timeline.tasks.length > 1)
      uncertainty = maxOf(timeline.tasks, task => task.uncertainty_us ?? 0, uncertainty);
    timeline.rows.forEach(([task, thread]) => rows.push({task, thread, clock: file + (aligned.get(task) === undefined ? " " + task : ""), label: (task && plan.tasks.length > 1 ? task + " " : "") + thread}));
    for (const [row, name, step, begin, duration] of timeline.events) {
      const [category, label] = timeline.names[name];
      if (!steps.has(step))
        steps.set(step, []);
      steps.get(step).push({row: first + row, category, name: label, begin: begin / 1e3, end: (begin + duration) / 1e3});
    }
  });
  const numbers = [...steps.keys()].sort((a, b) => a - b);
  // What the runtime calls each entry's operations, in order; and what it calls none of them is its own: communication,
  // copies of feeds.
  const nameOf = event => event.category + "\n" + event.name;
  const sequences = plan.entries.map(entry => entry.operations.map(nameOf));
  const known = new Set(sequences.flat());
  // The entry whose run begins at an event: every one of its operations is there, in order. An entry may begin as another
  // one does: the longest is it. A run that is cut off at the end may be one that has more operations than are left.
  const entryAt = (events, at) => {
    const left = events.length - at;
    let best = null, most = 0;
    plan.entries.forEach((entry, e) => {
      const names = sequences[e], compared = Math.min(names.length, left);
      for (let i = 0; i < compared; ++i)
        if (nameOf(events[at + i]) !== names[i])
          return;
      if (names.length > most)
        [best, most] = [entry, names.length];
    });
    return best;
  };
  // A step's events by row, each with the operation that it is of.
  const assigned = new Map();
  const assign = step => {
    if (assigned.has(step))
      return assigned.get(step);
    const byRow = rows.map(() => []);
    for (const event of (steps.get(step) || []).sort((a, b) => a.begin - b.begin))
      byRow[event.row].push(event);
    for (const all of byRow) {
      const work = all.filter(event => known.has(nameOf(event)));
      for (let at = 0; at < work.length;) {
        const entry = entryAt(work, at), size = entry?.operations.length || 1;
        if (entry && at + size <= work.length)
          entry.operations.forEach((operation, i) => work[at + i].operation = operation);
        at += size;
      }
    }
    assigned.set(step, byRow);
    return byRow;
  };
  const cache = new Map();
  // A step of an entry: rows with events, times from the first of them on; null where the step did not run the entry.
  const stepOf = (entry, step) => {
    const key = entry.number + ":" + step;
    if (cache.has(key))
      return cache.get(key);
    const byRow = assign(step).map(events => events.filter(event => event.operation ? event.operation.entry === entry : !known.has(nameOf(event))).map(event =>
      ({...event, bucket: !event.operation && event.category === "all_reduce" && entry.bucketByNumber.get(Number(event.name.match(/bucket (\d+)/)?.[1]))})));
    let found = null;
    const begins = byRow.flatMap(events => events.filter(event => event.operation).slice(0, 1).map(event => event.begin));
    if (begins.length) {
      // What has one clock is shown from its first event on: the tasks of a file together, those of others each for itself.
      const origins = new Map();
      byRow.forEach((events, i) => events.forEach(event => {
        if (event.operation)
          origins.set(rows[i].clock, Math.min(origins.get(rows[i].clock) ?? Infinity, event.begin));
      }));
      found = {step, rows: [], us: 0};
      byRow.forEach((events, i) => {
        const origin = origins.get(rows[i].clock) ?? events[0]?.begin ?? 0;
        events.forEach(event => { event.begin -= origin; event.end -= origin; });
        // What the runtime did before was for another entry.
        const shown = events.filter(event => event.end > 0);
        found.us = maxOf(shown, event => event.end, found.us);
        if (shown.length)
          found.rows.push({label: rows[i].label, events: shown});
      });
    }
    cache.set(key, found);
    return found;
  };
  const stepsOf = entry => numbers.filter(step => stepOf(entry, step));
  // The first one warms up.
  const warmStepsOf = entry => stepsOf(entry).length > 1 ? stepsOf(entry).slice(1) : stepsOf(entry);
  // The step whose time is the median.
  const typical = entry => {
    const warm = warmStepsOf(entry);
    return warm.slice().sort((a, b) => stepOf(entry, a).us - stepOf(entry, b).us)[warm.length >> 1];
  };
  // Mean over steps, the first left out, and replicas of what an operation took; undefined where it was not measured.
  const totals = new Map();
  const meanOf = operation => {
    const entry = operation.entry;
    if (!totals.has(entry)) {
      const sums = entry.operations.map(() => [0, 0]);
      for (const step of warmStepsOf(entry))
        for (const row of stepOf(entry, step).rows)
          for (const event of row.events)
            if (event.operation && event.operation.entry === entry) {
              sums[event.operation.number][0] += event.end - event.begin;
              ++sums[event.operation.number][1];
            }
      totals.set(entry, sums);
    }
    const [sum, count] = totals.get(entry)[operation.number];
    return count ? sum / count : undefined;
  };
  const clocks = new Set(rows.map(row => row.clock)).size;
  const clockText = clocks > 1 ? "each task from its own first operation on" : uncertainty === undefined ? ""
    : uncertainty === 0 ? "all tasks on one clock" : `all tasks on one clock, to within ${format.time(uncertainty)}`;
  return {exists: numbers.length > 0, stepOf, stepsOf, typical, meanOf, clockText};
})();

// ---- Scopes: nodes by the parts of their names ---------------------------------------------------------------------

// The tree of an entry. A node's time is an even part of each operation that it is in.
function makeScopes(entry) {
  const root = {name: "", path: "", children: new Map(), us: 0, flops: 0, writes: 0, operations: 0, remarks: 0};
  for (const operation of entry.operations) {
    const names = operation.nodes || [operation.operation.replace(/^drt\./, "") + " (no node)"];
    const touched = new Set();
    for (const name of names) {
      let scope = root;
      const parts = operation.nodes ? name.split("/") : [name];
      const path = [root];
      parts.forEach((part, i) => {
        if (!scope.children.has(part))
          scope.children.set(part, {name: part, path: parts.slice(0, i + 1).join("/"), children: new Map(), us: 0, flops: 0, writes: 0, operations: 0, remarks: 0});
        path.push(scope = scope.children.get(part));
      });
      if (!scope.isNode)
        path.forEach(part => part.remarks += nodes.get(name)?.remarks.length || 0);
      scope.isNode = true;
      for (const part of path) {
        part.us += (operation.end - operation.begin) / names.length;
        part.flops += (operation.flops || 0) / names.length;
        part.writes += (operation.writes || 0) / names.length;
        if (!touched.has(part))
          ++part.operations;
        touched.add(part);
      }
    }
  }
  return root;
}
