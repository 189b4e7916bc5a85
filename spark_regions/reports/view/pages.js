/* The pages of the tab but that of a query: each is a function from its JSON (docs/ui.md) to what stands on it. */
(function (view) {
  'use strict';
  const {el, known, count, counted, seconds, bytes, cell, cells, digest, told, sentence, list} = view;
  const {heading, muted, small, section, cards, badge, table} = view;
  const pages = {};
  view.pages = pages;

  /** Pages of the tab's navigation: path and name. */
  view.navigation = [['', 'Overview'], ['cache', 'Recycling cache'], ['graph', 'Operator graph'],
    ['explorations', 'Explorations'], ['running', 'Running queries'], ['lost', 'Decisions that lost']];

  /** Where things are, also behind a proxy and in the History Server; `view.root` is the UI's own. */
  view.links = {
    page: path => `${view.root}/regions/${path ? path + '/' : ''}`,
    json: path => `${view.links.page(path)}json`,
    sql: execution => `${view.root}/SQL/execution/?id=${execution}`,
    stage: (id, attempt) => `${view.root}/stages/stage/?id=${id}&attempt=${attempt}`,
    /** Our page of a query, by the execution where it has one. */
    query: (query, execution) => view.links.page('execution') + (execution >= 0 ? `?id=${execution}` : `?query=${query}`),
    entry: name => `${view.links.page('cache')}#entry-${encodeURIComponent(name)}`,
  };
  view.toQuery = (query, execution) =>
    cell(query >= 0 ? el('a', {href: view.links.query(query, execution)}, String(query)) : '', query);
  view.toSql = execution => cell(execution >= 0 ? el('a', {href: view.links.sql(execution)}, String(execution)) : '', execution);
  view.leftAlone = declined => `${counted(declined, 'operator')} left alone`;

  /** What was saved, as the overview and a report have it. */
  view.savedCards = function ({saved, actions}) {
    const did = kind => count(actions[kind] || 0);
    return [
      ['Seconds saved, measured', el('span', {id: 'regions-saved'}, seconds(saved.measured)),
        `by ${saved.choicesMeasured} choices, against plain runs`],
      ['Seconds saved, estimated', el('span', {id: 'regions-estimated'}, seconds(saved.estimated)),
        `by ${saved.loadsEstimated} other loads`],
      ['Seconds saved, predicted', el('span', {id: 'regions-predicted'}, seconds(saved.predicted)),
        `${did('load')} loads, ${did('recall')} recalls, ${did('share')} shared`],
    ];
  };

  view.reasonsSection = function (declines) {
    const rows = Object.entries(declines).map(([code, times]) => [sentence(code), cells.count(times), el('code', {}, code)]);
    return section('Why operators were left alone', rows.length, table({id: 'regions-reasons',
      caption: 'Reasons with how often each was given', columns: ['Reason', 'Times', 'Code'], rows}));
  };

  pages[''] = function (facts) {
    const {planner} = facts;
    const healthy = planner.healthy;
    const kept = facts.executionsKept;
    return [
      cards([
        ...view.savedCards(facts),
        ['Bytes held', el('span', {id: 'regions-held'}, bytes(facts.held.bytes)), `in ${facts.held.entries} entries`],
        ['Planner', healthy ? 'healthy' : el('span', {class: 'regions-bad'}, planner.state || ''),
          healthy ? `${planner.restarts || 0} restarts` : planner.reason],
        ['Mode', facts.mode, `strategy ${facts.strategy}`],
        ['Decisions that lost', el('a', {href: view.links.page('lost'), id: 'regions-lost'}, String(facts.lost)),
          `of ${facts.queriesDecided} queries`],
      ]),
      facts.asOf > 0 ? el('p', {class: 'text-muted small'}, `Planner and cache as of ${view.date(facts.asOf)}.`) : null,
      heading('Queries', kept),
      table({
        id: 'regions-queries', filtered: true, empty: 'No query has been planned yet.', rows: facts.executions.map(execution),
        caption: 'Queries, the newest first: SQL executions with their subqueries, and plans that were only explained',
        columns: [
          ['Query', 'Number of the plan; a page with its picture'],
          ['SQL', 'Spark\'s own page of the execution; empty for a plan that was only explained'],
          'Description', 'Started', 'Status', 'Duration', ['Decided in', 'Of the query and its subqueries that ran'],
          ['Done', 'Actions at places that ran'], ['Left alone', 'Operators at which nothing was done'], 'Predicted saving',
          ['Measured saving', 'What a plain run of the query took in the same state of the machine, less what this one took'],
          ['Estimated saving', 'Without such a run: what the operators took in other runs, less the reads in their place'],
        ],
      }),
      facts.executions.length < kept
        ? el('p', {}, el('a', {href: `${view.links.page('')}?limit=${kept}`}, `Show all ${kept}`)) : null,
      view.reasonsSection(facts.declines),
      values('Planner and counters', 'regions-planner', 'State of the planner process and counters of the application', 'Name',
        Object.entries(planner).filter(([, value]) => value === null || typeof value !== 'object')
          .concat(Object.entries(facts.counters || {}))),
      values('Settings in force', 'regions-confs', 'Settings of spark_regions', 'Key', Object.entries(facts.confs || {})),
    ];
  };

  function execution(e) {
    return [
      view.toQuery(e.query, e.executionId), view.toSql(e.executionId),
      [e.description, e.subqueries ? small(`with ${counted(e.subqueries, 'subquery', 'subqueries')}`) : null],
      cells.time(e.time),
      cell([badge(e.status, e.sinceStart), e.error ? el('div', {class: 'small regions-error', title: e.error}, e.error) : null],
        e.status),
      cells.seconds(e.seconds), cells.millis(e.planningMillis),
      [e.summary, e.counted || !Object.keys(e.done).length ? null : el('span', {class: 'text-muted'}, ' (decided)')],
      cells.count(e.declined), cells.seconds(e.predicted > 0 ? e.predicted : null), cells.seconds(e.saved),
      cells.seconds(e.estimated),
    ];
  }

  function values(title, id, caption, name, pairs) {
    return section(title, pairs.length, table({id, caption, columns: [name, 'Value'], rows: pairs.map(([key, value]) => {
      const raw = String(value);
      const shown = view.setting(key, raw);
      return [key, cell(shown === raw ? raw : el('span', {title: raw}, shown), raw)];
    })}));
  }

  pages.cache = facts => [
    el('p', {}, 'Results that are kept for later queries, those of other jobs included. Press a column’s head to sort.'),
    facts.truncated ? muted('Only the results that were used last are listed.') : null,
    table({
      id: 'regions-cache', caption: 'Kept results', filtered: true, empty: 'Nothing is kept.',
      rows: facts.entries.map(e => entry(e, facts.asOf)),
      columns: [
        'Entry',
        ['State', 'committed: can be read; pending: being written; persisted: in the memory of this application'],
        ['Operator', 'What the rows are the result of'], ['Made by', 'Application; and the query, where it is this one'],
        ['Query', 'That computed it, if in this application'], ['Read by', 'Queries of this application, the last ones'],
        'Why', 'Rows', 'Size', 'Columns', ['Uses', 'Loads that were reported'],
        ['Expected per use', 'Saving of one read, as estimated when it was stored; unknown where the operators had not been ' +
          'measured by then'],
        ['Saved, measured', 'By reads in queries of which a plain run is known'], ['Saved, estimated', 'By all other reads'],
        ['Saved, predicted', 'By all reads, each predicted when it was decided on'], 'Last used', 'Age',
      ],
    }),
  ];

  function entry(e, asOf) {
    const why = Array.from(new Set([e.reason, e.code].filter(Boolean))).join(', ');
    const age = Math.max(0, asOf / 1000 - (e.created || 0));
    const used = e.uses > 0;
    return [
      cell(el('span', {id: `entry-${e.entry}`}, digest(e.entry)), e.entry), e.state, e.operator,
      el('span', {title: e.application}, e.name || e.application || (e.here ? 'this application' : '')),
      e.here ? view.toQuery(e.query, e.executionId) : cell('', -1),
      list(e.readBy).map(reader => [view.toQuery(reader.query, reader.executionId).show, ' ']),
      el('span', {title: told(why, e.detail)}, why), cells.count(e.rows || 0), cells.bytes(e.bytes || 0),
      cells.count(e.columns > 0 ? e.columns : null), cells.count(e.uses || 0),
      e.benefit > 0 ? cells.seconds(e.benefit) : cells.unknown(el('span', {class: 'text-muted'}, 'unknown')),
      cells.seconds(e.measuredUses ? e.measured : null), cells.seconds(e.uses > (e.measuredUses || 0) ? e.estimated : null),
      cells.seconds(used ? e.predicted : null), cells.time((e.used || 0) * 1000),
      cell(el('span', {class: 'regions-line'}, view.long(age)), age),
    ];
  }

  pages.graph = function ({nodes, edges, operators}) {
    if (!nodes.length) return muted('No operator has been measured yet.');
    return [
      el('p', {}, `Operators of this and earlier jobs: the ${nodes.length} most used of ${Math.max(operators, nodes.length)}. `,
        'An arrow leads from an operator to the one that it feeds. A strong border and the word “stored” mean that its rows are kept.'),
      view.picture({id: 'regions-graph', noun: 'stored result', title: `Graph of the ${nodes.length} most used operators`,
        summary: 'The table “Most used operators” below has the same facts in words.', drawn: () => drawnGraph(nodes, edges)}),
      heading('Most used operators', nodes.length),
      table({
        id: 'regions-operators', caption: 'Operators, the most used first', filtered: true,
        columns: ['Operator', ['Lineage', 'Names the rows: equal on every machine, at any time'], 'Uses',
          ['Computed', 'Times that Spark computed it'], ['Task seconds', 'Of the operator alone, a mean'], 'Rows', 'Size', 'Stored'],
        rows: nodes.map(node => [
          el('span', {id: `op-${node.lineage}`}, el('a', {href: `#box-${encodeURIComponent(node.lineage)}`}, node.operator)),
          digest(node.lineage), cells.count(node.uses || 0), cells.count(node.executions || 0), cells.seconds(node.seconds),
          cells.count(node.rows), cells.bytes(node.bytes), node.stored ? 'stored' : '',
        ]),
      }),
    ];
  };

  function drawnGraph(nodes, edges) {
    const number = new Map(nodes.map((node, i) => [node.lineage, i]));
    const most = nodes.reduce((uses, node) => Math.max(uses, node.uses || 0), 1);
    const boxes = nodes.map(node => {
      const uses = node.uses || 0;
      const facts = [uses === 1 ? '1 use' : `${uses} uses`, known(node.seconds) ? seconds(node.seconds) : '',
        known(node.bytes) ? bytes(node.bytes) : ''].filter(Boolean).join(' · ');
      return {
        id: `box-${node.lineage}`,
        lines: [node.operator, facts],
        // Four tones by use; the number beside says the same.
        tone: uses * 2 > most ? 'most' : uses * 4 > most ? 'much' : uses > 1 ? 'some' : '',
        badge: node.stored ? '■ stored' : '',
        kind: node.stored ? 'kept' : '',
        hint: `${node.operator}, ${facts}, lineage ${node.lineage}`,
        anchor: `#op-${encodeURIComponent(node.lineage)}`,
        weight: uses,
      };
    });
    const arrows = edges.map(([from, to]) => ({from: number.get(from), to: number.get(to)}))
      .filter(({from, to}) => from !== undefined && to !== undefined)
      .map(({from, to}) => ({from, to, label: '', kept: boxes[from].kind === 'kept'}));
    return {boxes, arrows};
  }

  pages.lost = facts => [
    el('p', {}, 'Reads that saved less than a fifth of what was predicted, results that were written for nothing, actions that ',
      'could not be applied, and what was withdrawn because it had disappointed before.'),
    table({
      id: 'regions-lost', caption: 'Decisions that lost, the newest first', filtered: true, empty: 'No decision has lost so far.',
      columns: ['Query', ['SQL', 'Spark\'s own page'], 'When', 'What', 'Entry or node', 'Operator', 'Predicted saving',
        'Measured saving', 'Code', 'Reason'],
      rows: facts.lost.map(lost => [
        view.toQuery(lost.query, lost.executionId), view.toSql(lost.executionId), cells.time(lost.time), lost.what,
        digest(lost.entry), lost.operator, cells.seconds(lost.predicted), cells.seconds(lost.measured), lost.code,
        [lost.reason, lost.detail].filter(Boolean).join(': '),
      ]),
    }),
  ];
})(window.regionsView);
