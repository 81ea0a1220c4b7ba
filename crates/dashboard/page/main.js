"use strict";
// The page: what it is told of a database, and where each part of it is shown.
// Owns: the last five minutes. Never does: change anything of the database.

W.start = (doc) => {
  const at = (id) => doc.getElementById(id);
  const ROOM = 300;
  const state = { trees: [], before: null, series: { at: [], throughput: [], latency: [], stalls: [] } };
  const OPS = ["get", "seek", "put", "commit"];
  const CAUSES = { memtables_full: "all memtables full", level0_deep: "level 0 too deep", debt: "merges behind", wal_prepare: "next log not ready", sync_wait: "waiting for the device" };
  const PARTS = { memtables_bytes: "memtables", cache_bytes: "cache", tables_bytes: "tables", readers_bytes: "readers", merge_bytes: "merges", transactions_bytes: "transactions", outside_bytes: "the program's own" };

  const chosen = (box) => {
    if (!box) { at("tree-file").textContent = "No table is chosen."; return; }
    const file = box.file, place = box.isLog ? "SST-log, epoch " + file.epoch : "run";
    at("tree-file").textContent = `Table ${file.number}, level ${box.level.level} (${place}): ${W.bytes(file.bytes)}, ${W.number(file.entries)} entries, `
      + `${W.number(file.tombstones)} tombstones, ${(8 * file.filter_bytes / Math.max(file.entries, 1)).toFixed(1)} filter bits a key, `
      + `about ${W.number(Math.round(file.queries))} lookups, keys ${W.key(file.smallest_hex)} to ${W.key(file.largest_hex)}`;
  };
  const tree = new W.Tree(at("tree"), chosen), second = new W.Tree(at("tree-second"), chosen);

  const text = (place, value) => { if (place.textContent !== value) place.textContent = value; };

  const table = (place, head, rows) => {
    const cells = (row, kind) => {
      const line = doc.createElement("tr");
      line.append(...row.map((value) => { const cell = doc.createElement(kind); cell.textContent = value; if (kind === "th") cell.scope = "col"; return cell; }));
      return line;
    };
    const top = doc.createElement("thead"), body = doc.createElement("tbody");
    top.append(cells(head, "th"));
    body.append(...rows.map((row) => cells(row, "td")));
    place.replaceChildren(top, body);
  };

  const push = (series, point) => { series.push(point); if (series.length > ROOM) series.shift(); };

  const showCards = (stats, rate) => {
    const memory = stats.memory, used = Object.keys(PARTS).reduce((sum, part) => sum + memory[part], 0);
    const cards = [
      ["Lookups a second", W.number(rate("gets"))],
      ["Writes a second", W.number(rate("operations"))],
      ["Entries scanned a second", W.number(rate("entries_scanned"))],
      ["Write amplification", W.number(stats.write_amplification)],
      ["Blocks from files a second", W.number(rate("blocks_read"))],
      ["Cache hits", (100 * stats.cache_hit_ratio).toFixed(1) + " %"],
      ["Memory", W.bytes(used)],
      ["Write-ahead logs", W.bytes(stats.wal_live_bytes)],
      ["Tables", W.number(stats.levels.reduce((sum, level) => sum + level.run_files + level.log_files, 0))],
      ["On disk", W.bytes(stats.levels.reduce((sum, level) => sum + level.bytes, 0))],
    ];
    const place = at("cards");
    if (place.childElementCount !== cards.length) place.replaceChildren(...cards.map(() => { const card = doc.createElement("div"); card.append(doc.createElement("dt"), doc.createElement("dd")); return card; }));
    cards.forEach(([name, value], of) => { text(place.children[of].firstChild, name); text(place.children[of].lastChild, value); });
  };

  const showSeries = () => {
    W.chart(at("throughput"), state.series.throughput);
    W.legend(at("throughput-key"), ["lookups", "writes", "entries scanned"]);
    W.chart(at("latency"), state.series.latency, { text: (us) => W.micros(1000 * us), least: 10, log: true });
    W.legend(at("latency-key"), OPS);
    W.chart(at("stalls"), state.series.stalls, { bars: true });
    W.legend(at("stalls-key"), Object.values(CAUSES));
  };

  const shownTree = () => state.trees.find((of) => of.name === at("keyspace").value) || {};
  const logCapacity = () => shownTree().log_capacity || [];

  // The state of the dial between writes and reads.
  const dial = (shown) => {
    if (!shown.file_price_percent) return "";
    const logs = logCapacity().map((bytes, level) => (level && bytes ? `L${level} ${W.bytes(bytes)}` : "")).filter(Boolean);
    return `. Dial: one table less over each key is worth ${(shown.file_price_percent / 100).toFixed(2)} rewritten bytes per byte put; `
      + `so level 0 gathers ${W.bytes(logCapacity()[0] || 0)}, and SST-logs may hold ${logs.join(", ") || "nothing yet"}`;
  };

  const showLevels = (stats) => {
    const read = stats.gets_found || 1;
    table(at("levels"), ["Level", "Run", "SST-log", "Size", "Run may hold", "SST-log may hold", "Merges", "Moves", "Drops", "Read", "Written", "Lookups it answers"],
      stats.levels.map((level, of) => ["L" + level.level, W.number(level.run_files), W.number(level.log_files), W.bytes(level.bytes),
        tree.capacity[of] ? W.bytes(tree.capacity[of]) : "–", logCapacity()[of] ? W.bytes(logCapacity()[of]) : "–", W.number(level.merges), W.number(level.moves), W.number(level.drops),
        W.bytes(level.read_bytes), W.bytes(level.written_bytes), (100 * level.get_hits / read).toFixed(1) + " %"]));
  };

  // The expected rate of false positives of a filter with these bits a key.
  const expected = (bits) => Math.exp(-bits * Math.LN2 * Math.LN2);

  const showFilters = (stats) => {
    const levels = shownTree().levels || [];
    const rows = levels.map((level) => {
      const files = [...level.run, ...level.sst_log], sum = (of) => files.reduce((sum, file) => sum + of(file), 0);
      const entries = sum((file) => file.entries), bytes = sum((file) => file.filter_bytes), empty = sum((file) => Math.max(file.queries - file.hits, 0));
      const saved = sum((file) => Math.max(file.queries - file.hits, 0) * (1 - expected(8 * file.filter_bytes / Math.max(file.entries, 1))));
      return ["L" + level.level, W.number(entries), W.bytes(bytes), (8 * bytes / Math.max(entries, 1)).toFixed(1), W.number(Math.round(empty)), W.number(Math.round(saved))];
    });
    table(at("filters"), ["Level", "Entries", "Filters", "Bits a key", "Empty lookups, estimated", "Searches saved, expected"], rows);
    const checks = stats.filter_checks || 0, wrong = stats.filter_false_positives || 0, none = stats.filter_negatives || 0;
    text(at("filters-all"), `All filters were asked ${W.number(checks)} times, said no ${W.number(none)} times, and were wrong ${W.number(wrong)} times (${(100 * stats.filter_false_positive_ratio).toFixed(2)} %).`);
  };

  const showMemory = (memory) => {
    const bars = Object.entries(PARTS).map(([part, name], of) => {
      const bar = doc.createElement("i");
      bar.style.width = 100 * memory[part] / Math.max(memory.budget_bytes, 1) + "%";
      bar.style.background = `var(--c${of % 7})`;
      bar.title = name + ": " + W.bytes(memory[part]);
      return bar;
    });
    at("memory").replaceChildren(...bars);
    const words = Object.entries(PARTS).map(([part, name]) => name + " " + W.bytes(memory[part]));
    at("memory").setAttribute("aria-label", words.join(", ") + ", of " + W.bytes(memory.budget_bytes));
    const place = at("memory-key");
    if (place.childElementCount !== words.length) W.legend(place, words);
    words.forEach((word, of) => text(place.children[of], word));
  };

  const showWork = (running) => {
    const items = running.map((job) => {
      const item = doc.createElement("li");
      item.textContent = job.text;
      return item;
    });
    if (!items.length) { const item = doc.createElement("li"); item.textContent = "nothing: no flush and no merge"; items.push(item); }
    at("running").replaceChildren(...items);
  };

  const showEvents = (events) => {
    const place = at("events");
    for (const event of events) {
      const item = doc.createElement("li"), time = doc.createElement("time"), when = new Date(event.ms);
      time.dateTime = when.toISOString();
      time.textContent = when.toISOString().slice(11, 23);
      item.append(time, event.text);
      if (event.is_bad) item.className = "bad";
      place.prepend(item);
    }
    while (place.childElementCount > 200) place.lastChild.remove();
  };

  // The lab's two policies, one under the other.
  const showPair = () => {
    [[tree, "first"], [second, "second"]].forEach(([of, name], place) => {
      const shown = state.trees[place];
      at(name).hidden = of.canvas.hidden = !shown;
      if (!shown) return;
      of.show(shown.levels, at("colour").value);
      text(at(name), shown.name + ": " + shown.text);
    });
    text(at("policy"), state.trees.map((of) => of.name + ": " + of.policy).join(". "));
  };

  const showTree = () => {
    if (state.isLab) { showPair(); return; }
    const select = at("keyspace"), names = state.trees.map((of) => of.name);
    if ([...select.options].map((option) => option.value).join("\n") !== names.join("\n")) {
      const chosen = select.value;
      select.replaceChildren(...names.map((name) => { const option = doc.createElement("option"); option.value = name; option.textContent = name; return option; }));
      if (names.includes(chosen)) select.value = chosen;
    }
    const shown = state.trees.find((of) => of.name === select.value);
    if (!shown) return;
    tree.capacity = shown.capacity || [];
    tree.show(shown.levels, at("colour").value);
    text(at("policy"), "Policy: " + shown.policy + (shown.measured_use ? ". Use: " + shown.measured_use : "") + dial(shown));
  };

  const tick = (told) => {
    const stats = told.stats, before = state.before;
    const seconds = before ? (stats.uptime_us - before.uptime_us) / 1e6 : 0;
    const rate = (name) => (seconds > 0 ? Math.max(stats[name] - before[name], 0) / seconds : 0);
    if (seconds > 0) {
      push(state.series.at, stats.uptime_us);
      push(state.series.throughput, ["gets", "operations", "entries_scanned"].map(rate));
      push(state.series.latency, OPS.map((op) => (told.p99_ns && told.p99_ns[op] ? told.p99_ns[op] / 1000 : 0)));
      push(state.series.stalls, Object.keys(CAUSES).map((cause) => {
        const of = (all) => (all.pauses.find((pause) => pause.reason === cause) || { total_us: 0 }).total_us;
        return Math.max(of(stats) - of(before), 0) / 1000 / seconds;
      }));
    }
    state.before = stats;
    showCards(stats, rate);
    if (!at("speed").hidden) showSeries();
    showLevels(stats);
    showFilters(stats);
    showMemory(stats.memory);
    showWork(told.running || []);
    showEvents(told.events || []);
    const status = at("status");
    status.className = told.write_error ? "bad" : "";
    text(status, told.write_error ? "writes are off: " + told.write_error : told.status || "live");
  };

  const treeTold = (keyspaces) => { state.trees = keyspaces; showTree(); };

  // A moment says which tables have come and gone since the one before.
  const travel = ({ moments, tables, keyspaces }) => {
    const known = Object.fromEntries((keyspaces || []).map((of) => [of.name, of]));
    const last = {};
    const places = moments.map((moment) => moment.keyspaces.map((tree) => {
      const now = new Map(last[tree.name]);
      for (const place of tree.gone) now.delete(place.join());
      for (const place of tree.come) now.set(place.join(), place);
      last[tree.name] = now;
      return [...now.values()];
    }));
    const whole = (at) => moments[at].keyspaces.map((tree, of) => {
      const levels = Array.from({ length: tree.levels }, (_, level) => ({ level, run: [], sst_log: [] }));
      for (const [level, isLog, number, epoch] of places[at][of]) levels[level][isLog ? "sst_log" : "run"].push({ ...tables[tree.name][number], epoch });
      for (const level of levels) level.run.sort((a, b) => (a.smallest_hex < b.smallest_hex ? -1 : 1));
      const isLast = at === moments.length - 1;
      return { ...(isLast ? known[tree.name] : {}), ...tree, policy: tree.policy || (known[tree.name] || {}).policy, levels };
    });
    const range = at("moment"), words = at("moment-text");
    const button = at("play");
    let playing = 0;
    at("time").hidden = words.hidden = button.hidden = moments.length < 2;
    range.max = moments.length - 1;
    range.value = state.isLab ? 0 : moments.length - 1;
    const show = () => {
      const moment = moments[range.value];
      words.textContent = `${Number(range.value) + 1} of ${moments.length}: ${moment.text}`;
      treeTold(whole(Number(range.value)));
    };
    range.addEventListener("input", show);
    const stop = () => { clearInterval(playing); playing = 0; text(button, "Play"); };
    button.addEventListener("click", () => {
      if (playing) { stop(); return; }
      if (Number(range.value) === moments.length - 1) range.value = 0;
      text(button, "Pause");
      playing = setInterval(() => { range.value = Number(range.value) + 1; show(); if (Number(range.value) >= moments.length - 1) stop(); }, 300);
    });
    show();
  };

  at("keyspace").addEventListener("change", () => { showTree(); if (state.before) showFilters(state.before); });
  at("colour").addEventListener("change", showTree);
  at("theme").addEventListener("click", () => {
    const root = doc.documentElement, isDark = W.colour("--paper").startsWith("#1");
    root.dataset.theme = isDark ? "light" : "dark";
    if (state.before && !at("speed").hidden) showSeries();
    showTree();
  });
  window.addEventListener("resize", () => { if (state.before && !at("speed").hidden) showSeries(); showTree(); });
  W.state = state;
  W.shown = tree;

  const embedded = at("data");
  if (embedded) {
    const all = JSON.parse(embedded.textContent);
    text(at("path"), all.path);
    state.isLab = Boolean(all.is_lab);
    at("speed").hidden = true;
    for (const id of ["cards", "running", "events"]) at(id).closest("section").hidden = true;
    if (state.isLab) for (const section of doc.querySelectorAll("main > section")) section.hidden = !section.contains(at("tree"));
    if (all.moments && all.moments.length) travel(all); else treeTold(all.keyspaces);
    if (state.isLab) { at("keyspace").parentElement.hidden = true; text(at("status"), all.status); } else tick(all);
    return;
  }
  const events = new EventSource("events");
  events.addEventListener("path", (event) => text(at("path"), JSON.parse(event.data)));
  events.addEventListener("tree", (event) => treeTold(JSON.parse(event.data)));
  events.addEventListener("tick", (event) => tick(JSON.parse(event.data)));
  events.addEventListener("error", () => { at("status").className = "bad"; text(at("status"), "not connected: the server has ended, or cannot be reached"); state.before = null; });
};

W.start(document);
