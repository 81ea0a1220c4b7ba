// The page in Chromium: what it shows is what the server says; nothing fails, nothing is asked of others; it can be
// used at both widths, in both themes, by keyboard.
import { chromium } from "playwright-core";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

const axe = readFileSync("node_modules/axe-core/axe.min.js", "utf8");
const { URL: url, VIZ: viz, LAB: lab, SHOTS: shots, DB: db, WINDROW: windrow, ENOUGH: enough } = process.env;
const fail = (what) => { console.error("FAILED: " + what); process.exitCode = 1; };
const check = (isTrue, what) => { if (isTrue) console.log("ok: " + what); else fail(what); };

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });

const open = async (address, width, theme) => {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: theme, bypassCSP: false });
  const page = await context.newPage();
  page.on("console", (message) => { if (message.type() === "error") fail("console: " + message.text()); });
  page.on("pageerror", (error) => fail("page: " + error));
  page.on("requestfailed", (request) => { if (!request.url().endsWith("/events")) fail("request: " + request.url()); });
  page.on("request", (request) => { if (!/^(http:\/\/127\.0\.0\.1:7399\/|file:|data:)/.test(request.url())) fail("foreign: " + request.url()); });
  page.on("dialog", (dialog) => fail("a script of a key ran: " + dialog.message()));
  await page.goto(address);
  await page.waitForFunction(() => (W.state.before || W.state.isLab) && W.shown.boxes.length > 0, null, { timeout: 30000 });
  return page;
};

const accessible = async (page, what) => {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => (await axe.run()).violations.map((of) => of.id + ": " + of.nodes.map((node) => node.html.slice(0, 120)).join(" | ")));
  check(found.length === 0, "axe-core, " + what + (found.length ? ": " + found.join("; ") : ""));
};

// Under load, at both widths and in both themes.
for (const [width, theme] of [[1280, "light"], [1280, "dark"], [390, "light"], [390, "dark"]]) {
  const page = await open(url, width, theme);
  await page.waitForTimeout(width === 1280 && theme === "light" ? 12000 : 4000);
  const what = width + " pixels, " + theme;
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  check(wide <= 0, "nothing is wider than the page, " + what);
  await accessible(page, what);
  await page.screenshot({ path: `${shots}/live-${width}-${theme}.png`, fullPage: true });
  if (width === 1280 && theme === "light") await agrees(page);
  await page.context().close();
}

// Drawings are compared with the server's own words.
async function agrees(page) {
  const series = await page.evaluate(() => W.state.series.throughput.length);
  check(series >= 5, series + " points of the series in 12 seconds");
  const rates = await page.evaluate(() => W.state.series.throughput.some((point) => point[1] > 0));
  check(rates, "writes are seen");
  const events = await page.locator("#events li").count();
  check(events > 0, events + " events");
  // The tree moves on under load: it is compared until both were read of the same moment.
  let same = null;
  for (let round = 0; round < 60 && !same; round += 1) {
    const said = await (await fetch(url + "state.json")).json();
    const drawn = await page.evaluate(() => W.state.trees.map((tree) => [tree.name, tree.levels.map((level) => [level.run, level.sst_log].map((part) => part.map((file) => file.number)))]));
    const expected = said.keyspaces.map((tree) => [tree.name, tree.levels.map((level) => [level.run, level.sst_log].map((part) => part.map((file) => file.number)))]);
    if (JSON.stringify(drawn) === JSON.stringify(expected)) same = said;
    else await page.waitForTimeout(200);
  }
  check(same, "tables are those of state.json");
  const boxes = await page.evaluate(() => { const levels = W.shown.levels; return [W.shown.boxes.length, levels.reduce((sum, level) => sum + level.run.length + level.sst_log.length, 0)]; });
  check(boxes[0] === boxes[1], `${boxes[0]} boxes for ${boxes[1]} tables`);
  const row = await page.locator("#levels tbody tr").count();
  check(row > 0, row + " levels in the table");
  // By keyboard.
  await page.focus("#tree");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowDown");
  const chosen = await page.locator("#tree-file").textContent();
  check(/^Table \d+, level/.test(chosen), "by keyboard: " + chosen.slice(0, 60));
}

// The numbers, one by one: a second reader of the stream, counters before and after, and the program's own JSON.
{
  const page = await open(url, 1280, "light");
  const ticks = new Map(), stop = new AbortController();
  const reading = (async () => {
    let text = "";
    for await (const part of (await fetch(url + "events", { signal: stop.signal })).body.pipeThrough(new TextDecoderStream())) {
      text += part;
      for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
        const [, name, data] = /^event: (\w+)\ndata: (.*)$/s.exec(text.slice(0, end)) || [];
        if (name === "tick") { const told = JSON.parse(data); ticks.set(told.stats.uptime_us, told); }
      }
    }
  })().catch(() => {});
  await page.waitForTimeout(8000);
  writeFileSync(enough, "");
  // Load has ended when two ticks in a row have counted the same.
  await page.waitForFunction(() => { const points = W.state.series.throughput; return points.length > 5 && points.slice(-3).every((point) => point.every((rate) => rate === 0)); }, null, { timeout: 60000 });
  const series = await page.evaluate(() => W.state.series);
  stop.abort();
  await reading;
  let compared = 0, wrong = [];
  series.at.forEach((at, point) => {
    const before = ticks.get(series.at[point - 1]), now = ticks.get(at);
    if (!before || !now) return;
    const seconds = (at - series.at[point - 1]) / 1e6;
    const rates = ["gets", "operations", "entries_scanned"].map((name) => (now.stats[name] - before.stats[name]) / seconds);
    const stalls = now.stats.pauses.map((pause, of) => (pause.total_us - before.stats.pauses[of].total_us) / 1000 / seconds);
    const latency = ["get", "seek", "put", "commit"].map((op) => (now.p99_ns[op] || 0) / 1000);
    const drawn = [...series.throughput[point], ...[...series.stalls[point]].sort(), ...series.latency[point]];
    const told = [...rates, ...stalls.sort(), ...latency];
    if (JSON.stringify(drawn) !== JSON.stringify(told)) wrong.push(JSON.stringify([drawn, told]));
    compared += 1;
  });
  check(compared >= 5 && wrong.length === 0, compared + " points of the series are differences of the counters" + (wrong[0] ? ": " + wrong[0] : ""));
  const said = (command) => JSON.parse(execFileSync(windrow, [command, db, "--json"], { encoding: "utf8", maxBuffer: 1 << 28 }));
  // A running database writes its counters to a file now and then.
  const counters = ["gets", "operations", "entries_scanned", "pauses", "levels", "blocks_read", "filter_checks"];
  let stats, shown;
  for (let round = 0; round < 50; round += 1) {
    [stats, shown] = [said("stats"), await page.evaluate(() => [W.state.before, W.state.trees])];
    if (counters.every((name) => JSON.stringify(shown[0][name]) === JSON.stringify(stats[name]))) break;
    await page.waitForTimeout(200);
  }
  const tree = said("tree");
  for (const name of counters) {
    check(JSON.stringify(shown[0][name]) === JSON.stringify(stats[name]), `${name} are those of stats --json (${JSON.stringify([shown[0][name], stats[name]]).slice(0, 60)})`);
  }
  const places = (trees, log) => JSON.stringify(trees.map((of) => [of.name, of.levels.map((level) => [level.run, level[log]].map((part) => part.map((file) => file.number)))]).sort());
  check(places(shown[1], "sst_log") === places(tree.keyspaces || tree, "sst_log"), "boxes are those of tree --json");
  const events = await (await fetch(url + "state.json")).json();
  check(JSON.stringify(events.keyspaces) === JSON.stringify(shown[1]), "trees are those of state.json");
  await page.context().close();
}

// Frames while a thousand tables are drawn again and again.
{
  const page = await open(url, 1280, "light");
  const rate = await page.evaluate(async () => {
    const hex = (number) => number.toString(16).padStart(8, "0");
    const files = (base, count) => Array.from({ length: count }, (_, at) => ({ number: base + at, epoch: 0, bytes: 1e6, entries: 1e4, tombstones: at % 7, smallest_hex: hex(at * 1000), largest_hex: hex(at * 1000 + 990), filter_bytes: 12500, hotness: at % 11, queries: at, hits: 0 }));
    const levels = [0, 1, 2, 3].map((level) => ({ level, run: level ? files(level * 1e5, 250) : [], sst_log: level ? [] : files(0, 250) }));
    W.shown.show(levels, "age");
    let frames = 0;
    const begin = performance.now();
    while (performance.now() - begin < 3000) {
      await new Promise(requestAnimationFrame);
      W.shown.draw();
      frames += 1;
    }
    return frames / 3;
  });
  check(rate >= 55, rate.toFixed(1) + " frames a second with 1,000 tables");
  await page.context().close();
}

// All data dropped, then writing off, while the page is open.
{
  const page = await open(url, 1280, "light");
  const redis = (...words) => execFileSync("redis-cli", ["-p", "7398", ...words], { encoding: "utf8" }).trim();
  redis("FLUSHALL");
  redis("WINDROW.COMPACT");
  await page.waitForFunction(() => { W.shown.draw(); return W.shown.boxes.length === 0; }, null, { timeout: 20000 });
  check(true, "data that is dropped leaves the page");
  const limit = (bytes) => execFileSync("prlimit", ["--pid", process.env.SERVER, "--fsize=" + bytes]);
  limit("4096:unlimited");
  const refused = redis("SET", "k", "x".repeat(100000));
  await page.waitForFunction(() => document.getElementById("status").className === "bad", null, { timeout: 60000 });
  const status = await page.locator("#status").textContent();
  check(/^writes are off: /.test(status), JSON.stringify(status.slice(0, 100)) + ", and a client is told " + JSON.stringify(refused.slice(0, 60)));
  limit("unlimited:unlimited");
  check(redis("WINDROW.RESUME") === "OK" && redis("SET", "k", "x") === "OK", "writing goes on");
  await page.waitForFunction(() => document.getElementById("status").textContent === "live", null, { timeout: 20000 });
  check(true, "the page is told");
  await page.context().close();
}

// The offline page.
for (const [width, theme] of [[1280, "light"], [390, "dark"]]) {
  const page = await open("file://" + viz, width, theme);
  const moments = await page.evaluate(() => Number(document.getElementById("moment").max) + 1);
  check(moments > 1, moments + " moments of the past");
  await page.evaluate(() => { const range = document.getElementById("moment"); range.value = 0; range.dispatchEvent(new Event("input")); });
  const drawn = () => page.evaluate(() => { W.shown.draw(); return W.shown.boxes.map((box) => box.file.number).sort().join(); });
  const past = await drawn();
  await page.evaluate(() => { const range = document.getElementById("moment"); range.value = range.max; range.dispatchEvent(new Event("input")); });
  const now = await drawn();
  check(past !== now && now.split(",").length > 1, "the first moment shows other tables than the last");
  await accessible(page, "offline, " + width + " pixels, " + theme);
  await page.screenshot({ path: `${shots}/viz-${width}-${theme}.png`, fullPage: true });
  await page.context().close();
}
// The lab: two policies play.
for (const [width, theme] of [[1280, "light"], [390, "dark"]]) {
  const page = await open("file://" + lab, width, theme);
  const before = await page.locator("#first").textContent();
  await page.focus("#play");
  await page.keyboard.press("Enter");
  await page.waitForTimeout(2000);
  await page.keyboard.press("Enter");
  const after = await page.locator("#first").textContent();
  const moment = await page.evaluate(() => Number(document.getElementById("moment").value));
  check(moment >= 3, "the lab plays: " + moment + " steps, from " + JSON.stringify(before) + " to " + JSON.stringify(after));
  await accessible(page, "lab, " + width + " pixels, " + theme);
  await page.screenshot({ path: `${shots}/lab-${width}-${theme}.png`, fullPage: true });
  await page.context().close();
}
await browser.close();
