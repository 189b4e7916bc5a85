/* The skewed stages of a query. */
(function (view) {
  'use strict';
  const {el, known, percent, seconds, cell, cells, told, list, grouped, heading, small, table} = view;

  /** The stages whose tasks would be uneven: how they were arranged, how long that took, the share of each heavy partition. */
  view.skewTable = function (query) {
    const stages = list(query.decisions).filter(each => each.topic === 'skew');
    const measured = grouped([].concat(...stages.map(each => list(each.actions))).map(action => action.stageRun).filter(Boolean),
      run => run.stage);
    const rows = [].concat(...stages.map(stage => {
      const arranged = list(stage.actions).filter(action => !action.stageRun);
      const why = list(stage.declines).map(decline => el('div', {}, `${decline.code}: ${told(decline.code, decline.detail)}`));
      if (!arranged.length && !why.length) return [];
      if (!arranged.length) return [[stage.declines[0].operator, 'left alone', ...Array(4).fill(cells.seconds(null)), '', why]];
      return arranged.map(action => stageRow(action, why, measured));
    }));
    if (!rows.length) return null;
    return [heading('Skewed stages', rows.length), table({
      id: `regions-skew-${query.query}`, caption: 'Stages whose tasks are uneven', rows,
      columns: ['Stage of', 'Arranged',
        ['Plain, predicted', 'From the stage\'s start to its last task\'s end, as Spark had planned it'],
        ['Arranged, predicted', 'The same, as it is arranged now'],
        ['Evenly spread', 'The same work spread evenly over all cores: no arrangement is faster'],
        ['Measured', 'From the start of the first of Spark\'s stages that ran it to the end of the last'],
        ['Heavy partitions and keys', 'Share of the input\'s bytes, and of its rows by a sample, the heaviest first'],
        'Not done, and why'],
    })];
  };

  function stageRow(action, why, measured) {
    const makespan = action.makespan || {};
    const runs = measured.get(makespan.stage) || [];
    // Several stages may have read the rows of a key.
    const keys = Array.from(grouped([].concat(...runs.map(run => list(run.keys))), each => each.key).values(), ([first]) => first);
    const took = spent(runs);
    return [
      action.operator,
      [action.kind.replace(/_/g, ' '), known(makespan.tasks) ? small(`${makespan.partitions} partitions in ${makespan.tasks} tasks`) : null],
      cells.seconds(makespan.plain), cells.seconds(makespan.predicted), cells.seconds(makespan.balanced),
      cell([known(took) ? seconds(took) : 'not ended', runs.slice().sort((a, b) => a.sparkStage - b.sparkStage).map(run =>
        small(el('a', {href: view.links.stage(run.sparkStage, run.attempt)}, `stage ${run.sparkStage}`),
          `: ${seconds(spent([run]))} in ${run.tasks} tasks`))], known(took) ? took : -1),
      [list(action.splits).map(split), keys.map(each => el('div', {}, el('code', {}, each.key),
        ` ${(100 * each.share).toFixed(1)} % of the rows (± ${(100 * each.error).toFixed(1)} %)`))],
      why,
    ];
  }

  /** Parts may run side by side, so the times of the parts are not to be added. */
  function spent(runs) {
    if (!runs.length) return null;
    return (Math.max(...runs.map(run => run.ended)) - Math.min(...runs.map(run => run.began))) / 1000;
  }

  function split(each) {
    const bar = el('span', {class: 'regions-bar', 'aria-hidden': 'true'});
    bar.style.width = `${(120 * each.share).toFixed(0)}px`;
    const side = each.side ? `the ${each.side} input` : 'the input';
    return el('div', {}, bar, ` ${percent(each.share)} of ${side} (partition ${each.partition}) to ${each.tasks} tasks`, small(each.how));
  }
})(window.regionsView);
