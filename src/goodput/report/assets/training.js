"use strict";
// Charts of a training page, from the embedded ledger.
(() => {
  const ledger = report.data;
  const names = ledger.timeline.map((track) => track.name.length);
  const narrow = innerWidth < 640;
  report.clock.gutter = narrow ? 68 : Math.min(150, Math.max(64, Math.max(0, ...names, 9) * 6.8 + 12));
  report.clock.offset = ledger.started_at_ns / 1e9;
  report.clock.begin(ledger.started_at_ns / 1e9, ledger.ended_at_ns / 1e9);
  report.bands("c-timeline", { tracks: ledger.timeline, incidents: ledger.incidents });
  report.stack("c-goodput", { series: ledger.series, losses: ledger.waterfall.losses });
  report.stepTimes("c-steptime", { times: ledger.step_times, ideal_s: ledger.steps.ideal_step_ns / 1e9 });
  document.documentElement.dataset.charts = String(report.clock.charts.length);
})();
