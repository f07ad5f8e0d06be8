"use strict";
// Curves over time: stacked classes with a rolling goodput line, and the distribution of step time.
(() => {
  // Cumulated from the bottom: useful first, then the losses from the last of the waterfall up, so
  // that the picture steps down in the waterfall's order.
  const stackOrder = (classes, losses) => {
    const named = losses.map((loss) => loss.name).filter((name) => classes[name]);
    const others = Object.keys(classes).filter((name) => name !== "useful" && name !== "excluded" && !named.includes(name));
    return ["useful", ...[...named, ...others].reverse()].filter((name) => classes[name] && classes[name].some((amount) => amount > 0));
  };

  const rolling = (useful, capacity, windows) => {
    const found = [null];
    let good = 0, bought = 0;
    for (let i = 0; i < capacity.length; i += 1) {
      good += useful[i];
      bought += capacity[i];
      if (i >= windows) {
        good -= useful[i - windows];
        bought -= capacity[i - windows];
      }
      found.push(bought > 0 ? Math.min(1, Math.max(0, good / bought)) : null);
    }
    return found;
  };

  const insideOf = (frame, chart, tip, show) => {
    const { left, top, idx } = chart.cursor;
    if (left < 0 || idx === null || idx === undefined || !chart.over.matches(":hover")) return tip.hide();
    return show(idx, left + chart.over.offsetLeft + frame.offsetLeft, top + chart.over.offsetTop + frame.offsetTop);
  };

  report.stack = (id, { series, losses }) => {
    const frame = document.getElementById(id);
    const count = series.starts_ns.length;
    if (!frame || !count) return null;
    const names = stackOrder(series.classes, losses);
    const width = series.width_ns / 1e9;
    const starts = series.starts_ns.map((ns) => ns / 1e9);
    const xs = [...starts, starts[count - 1] + width];
    const below = new Array(count).fill(0);
    const levels = names.map((name) => series.classes[name].map((amount, i) => {
      below[i] += amount;
      return series.capacity[i] > 0 ? below[i] / series.capacity[i] : null;
    }));
    const windows = Math.max(1, Math.min(count, Math.max(3, Math.round(count / 20))));
    const useful = series.classes.useful || new Array(count).fill(0);
    const line = rolling(useful, series.capacity, windows);
    const stepped = uPlot.paths.stepped({ align: 1 });
    const top = [...names.keys()].reverse();

    const tip = report.tip(frame);
    const base = report.clock.options(frame, 210);
    base.hooks.setCursor = [(chart) => insideOf(frame, chart, tip, (idx, x, y) => {
      const s = chart.posToVal(chart.cursor.left, "x");
      const at = Math.min(count - 1, Math.max(0, Math.floor((s - starts[0]) / width)));
      if (!(series.capacity[at] > 0)) return tip.hide();
      const rows = names
        .map((name) => [name, series.classes[name][at] / series.capacity[at]])
        .filter(([, share]) => share > 0)
        .map(([name, share]) => [name, report.percent(share), report.color(name)])
        .reverse();
      const now = line[at + 1];
      return tip.show(x, y, `${report.instant(starts[at])} UTC`, [
        `window of ${report.duration(width)}`, ...(now === null ? [] : [`rolling goodput ${report.percent(now)}`]),
      ], rows);
    })];
    const plot = new uPlot({
      ...base,
      scales: { x: report.clock.scale(), y: { range: [0, 1] } },
      axes: [
        report.clock.axis(),
        report.clock.side({ values: (_, splits) => splits.map((share) => `${Math.round(share * 100)} %`), space: 34 }),
      ],
      series: [
        {},
        ...top.map((place) => ({
          scale: "y", paths: stepped, width: 0, points: { show: false }, fill: () => report.color(names[place]),
        })),
        { scale: "y", stroke: () => report.ink("ink"), width: 1.75, points: { show: count < 3 } },
      ],
    }, [xs, ...top.map((place) => [...levels[place], levels[place][count - 1]]), line], frame);
    frame.addEventListener("mouseleave", () => tip.hide());
    report.clock.add(frame, plot);
    report.legend(frame, [
      ...names.map((name) => [name, () => report.color(name)]),
      [`goodput over ${report.duration(width * windows)}`, () => report.ink("ink"), "stroke"],
    ]);
    report.numbers(frame, ["window (UTC)", ...names, "rolling goodput"], () => starts.map((s, i) => [
      report.instant(s),
      ...names.map((name) => (series.capacity[i] > 0 ? report.percent(series.classes[name][i] / series.capacity[i]) : "-")),
      line[i + 1] === null ? "-" : report.percent(line[i + 1]),
    ]));
    return plot;
  };

  // A pause (an incident, an evaluation) is a gap in the curves, not a line across it.
  const withGaps = (times) => {
    const order = times.at_ns.map((_, i) => i).sort((a, b) => times.at_ns[a] - times.at_ns[b]);
    const at = order.map((i) => times.at_ns[i] / 1e9);
    const spaces = at.slice(1).map((s, i) => s - at[i]).sort((a, b) => a - b);
    const usual = spaces.length ? spaces[spaces.length >> 1] : 0;
    const columns = { x: [], step: [], p10: [], median: [], p90: [], longest: [] };
    order.forEach((i, place) => {
      if (place && at[place] - at[place - 1] > 4 * usual) {
        columns.x.push((at[place] + at[place - 1]) / 2);
        for (const name of ["step", "p10", "median", "p90", "longest"]) columns[name].push(null);
      }
      columns.x.push(at[place]);
      columns.step.push(times.first_step[i]);
      for (const name of ["p10", "median", "p90", "longest"]) columns[name].push(times[`${name}_ns`][i] / 1e9);
    });
    return columns;
  };

  const LONG_TAIL = 6;
  report.stepTimes = (id, { times, ideal_s }) => {
    const frame = document.getElementById(id);
    if (!frame || !times.at_ns.length) return null;
    const data = withGaps(times);
    const known = (list) => list.filter((s) => s !== null && s > 0);
    const highest = Math.max(...known(data.longest), ideal_s);
    const lowest = Math.min(...known(data.p10), ideal_s || Infinity);
    const log = highest / Math.max(lowest, 1e-12) > LONG_TAIL;
    const tip = report.tip(frame);
    const base = report.clock.options(frame, 190);
    base.hooks.setCursor = [(chart) => insideOf(frame, chart, tip, (idx, x, y) => {
      if (data.median[idx] === null) return tip.hide();
      return tip.show(x, y, `from step ${data.step[idx].toLocaleString("en")}`, [`${report.instant(data.x[idx])} UTC`],
        ["longest", "p90", "median", "p10"].map((name) => [name, report.duration(data[name][idx]), tints[name]()]));
    })];
    base.hooks.draw = [(chart) => {
      if (!ideal_s) return;
      const y = Math.round(chart.valToPos(ideal_s, "y", true)) + 0.5;
      const { ctx, bbox } = chart;
      ctx.save();
      ctx.strokeStyle = report.ink("good");
      ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
      ctx.lineWidth = devicePixelRatio;
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      ctx.restore();
    }];
    const tints = {
      longest: () => report.color("recovery"),
      p90: () => report.faded(report.ink("accent"), 0.55),
      median: () => report.ink("accent"),
      p10: () => report.faded(report.ink("accent"), 0.55),
    };
    const few = data.x.length < 3;
    const curve = (name, width) => ({ scale: "y", stroke: tints[name], width, points: { show: few } });
    const range = log ? [lowest * 0.9, highest * 1.1] : [0, highest * 1.08];
    const plot = new uPlot({
      ...base,
      scales: { x: report.clock.scale(), y: { distr: log ? 3 : 1, range } },
      axes: [
        report.clock.axis(),
        report.clock.side({ values: (_, splits) => splits.map((s) => (s === null ? "" : report.duration(s))), space: 28 }),
      ],
      series: [{}, curve("longest", 1), curve("p90", 0.75), curve("median", 1.75), curve("p10", 0.75)],
      bands: [{ series: [2, 4], fill: () => report.faded(report.ink("accent"), 0.18) }],
    }, [data.x, data.longest, data.p90, data.median, data.p10], frame);
    frame.addEventListener("mouseleave", () => tip.hide());
    report.clock.add(frame, plot);
    report.legend(frame, [
      ["longest", tints.longest, "stroke"], ["p10 to p90", () => report.faded(report.ink("accent"), 0.3)], ["median", tints.median, "stroke"],
      ...(ideal_s ? [["ideal", () => report.ink("good"), "stroke"]] : []),
      ...(log ? [["logarithmic scale", () => "transparent", "none"]] : []),
    ]);
    report.numbers(frame, ["from step", "at (UTC)", "p10", "median", "p90", "longest"], () => data.x
      .map((s, i) => [s, i]).filter(([, i]) => data.median[i] !== null)
      .map(([s, i]) => [
        String(data.step[i]), report.instant(s),
        ...["p10", "median", "p90", "longest"].map((name) => report.duration(data[name][i])),
      ]));
    return plot;
  };
})();
