/* Explorations: a list of them, and one with its branches and what goes on from those, as a tree. */
(function (view) {
  'use strict';
  const {el, known, count, counted, seconds, bytes, cell, cells, list} = view;
  const {muted, small, cards, badge, table, pages} = view;
  const COLOURS = {kept: 'text-bg-success', running: 'text-bg-primary', failed: 'text-bg-danger', waiting: 'text-bg-light border'};
  const link = (id, words) => el('a', {href: `${view.links.page('exploration')}?id=${id}`}, words || `Exploration ${id}`);

  /** Six digits; an infinite one is its name. */
  const score = value => (known(value) ? cell(typeof value === 'number' ? String(+value.toPrecision(6)) : value, value) : cells.unknown());
  const scored = value => (known(value) ? score(value).show : '–');
  const states = facts => Object.entries(facts.states || {}).map(([state, times]) => `${count(times)} ${state}`).join(', ');
  const above = facts => list(facts.parents).map(([id, branch], i) => [i ? '; ' : '', link(id, `exploration ${id}, branch ${branch}`)]);
  const held = value => (value > 0 ? cells.bytes(value) : cells.unknown());
  const status = facts => (facts.status === 'interrupted' ? el('span', {class: 'badge text-bg-secondary'}, 'interrupted') : badge(facts.status));

  pages.explorations = function ({explorations}) {
    return [
      el('p', {}, 'Families of programs of which the best are kept (', el('code', {}, 'explore(…)(…).choose(…)'), '), the newest first.'),
      table({
        id: 'regions-explorations', caption: 'Explorations, the newest first', filtered: true, empty: 'Nothing has been explored so far.',
        columns: ['Exploration', 'Function', ['Goes on from', 'Branches of others'], 'Started', 'Status', 'Duration', 'Selection',
          'Branches', 'Best score',
          ['Held', 'Bytes in memory and on disk, of branches that are kept']],
        rows: explorations.map(facts => [
          cell(link(facts.exploration, String(facts.exploration)), facts.exploration), facts.function, above(facts), cells.time(facts.began),
          cell(status(facts), facts.status), cells.seconds(facts.seconds), facts.select,
          cell([count(facts.branches), small(states(facts))], facts.branches), score(facts.best), held(facts.bytes),
        ]),
      }),
    ];
  };

  pages.exploration = function ({exploration, explorations}) {
    const facts = explorations.find(each => each.exploration === exploration);
    if (!facts) return muted('Nothing is known of it: it is older than those that are kept (spark.sql.ui.retainedExecutions).');
    const rows = [];
    list(facts.tree).forEach(branch => add(rows, facts, branch, 0, {}, explorations));
    return [
      el('p', {}, status(facts), ' ', facts.function, list(facts.parents).length ? [': goes on from ', above(facts)] : null,
        facts.status === 'running' ? ` (as of ${view.date(facts.time)}; reload for more)` : ''),
      facts.error ? el('p', {class: 'regions-bad', id: 'regions-failed'}, facts.error) : null,
      cards([
        ['Branches', el('span', {id: 'regions-branches'}, count(facts.branches)), states(facts)],
        ['Best score', el('span', {id: 'regions-best'}, scored(facts.best)), facts.select],
        ['Ran for', seconds(facts.seconds), view.date(facts.began)],
        ['Held', bytes(facts.bytes), 'by branches that are kept'],
        ['Order', facts.order, facts.shape ? `scores are ${facts.shape}` : 'nothing is known of the scores'],
      ]),
      explorations.map(rest),
      table({
        id: 'regions-tree', caption: 'Branches, with the explorations that go on from them', filtered: true, rows: rows.map(row => row.cells),
        levels: rows.map(row => row.level), empty: 'No branch has run so far.',
        columns: ['Branch', 'Parameters', 'Score', 'Duration', 'State',
          ['Held', 'Bytes in memory and on disk, as of when it was scored, or of the end'], 'Why'],
      }),
    ];
  };

  /** Three lines of it; all of it for a pointer. */
  const given = text => el('div', {class: 'regions-given', title: text}, text);

  /** A branch, then each exploration that goes on from it, with its branches. */
  function add(rows, facts, branch, level, outer, explorations) {
    const inner = Object.entries(branch.parameters || {}).filter(([name]) => !(name in outer));
    rows.push({level, cells: [
      cell(branch.branch, branch.branch),
      given(inner.map(([name, value]) => `${name}=${value}`).join(', ')),
      score(branch.score), branch.seconds > 0 ? cells.seconds(branch.seconds) : cells.unknown(),
      cell(el('span', {class: `badge ${COLOURS[branch.state] || 'text-bg-secondary'}`}, branch.state), branch.state),
      held(branch.bytes), given(branch.why),
    ]});
    explorations.forEach(scope => {
      const parents = list(scope.parents);
      const at = parents.findIndex(([id, number]) => id === facts.exploration && number === branch.branch);
      if (at < 0) return;
      rows.push({level: level + 1, cells: [
        cell(link(scope.exploration), scope.exploration), given(scope.function),
        score(scope.best), cells.seconds(scope.seconds), cell(status(scope), scope.status), held(scope.bytes), states(scope),
      ]});
      // As many branches go on from each.
      list(scope.tree).filter(each => Math.floor(each.branch * parents.length / scope.branches) === at)
        .forEach(each => add(rows, scope, each, level + 2, branch.parameters || {}, explorations));
    });
  }

  /** What is not told one by one. */
  function rest(facts) {
    const listed = list(facts.tree);
    const missing = facts.branches - listed.length;
    if (!(missing > 0)) return null;
    const left = {};
    Object.entries(facts.states || {}).forEach(([state, times]) => {
      const others = times - listed.filter(branch => branch.state === state).length;
      if (others > 0) left[state] = others;
    });
    return el('p', {class: 'text-muted', id: `regions-rest-${facts.exploration}`}, `Of exploration ${facts.exploration}, `,
      `${counted(listed.length, 'branch', 'branches')} of ${count(facts.branches)} are listed: the first that ran, and those that are kept. `,
      `The others: ${states({states: left})}.`);
  }
})(window.regionsView);
