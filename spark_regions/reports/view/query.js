/* The page of one SQL execution: what was decided on it, why, and what that brought. */
(function (view) {
  'use strict';
  const {el, known, counted, seconds, millis, bytes, cell, cells, digest, told, reason, list, grouped} = view;
  const {heading, muted, fold, section, cards, badge, table} = view;
  /** Operators that are drawn on one page, the first plan in any case. */
  const MOST_OPERATORS = 1000;
  /** Bounds of an event, as the shim keeps them. */
  const BOUNDS = {nodes: 2000, actions: 500, declines: 100, text: 500};

  view.pages.execution = function (facts) {
    const queries = list(facts.queries);
    const execution = facts.executionId;
    const up = execution < 0 ? el('p', {}, badge('planned'), ' No SQL execution of Spark is known for it.')
      : el('p', {}, queries.length ? [badge(facts.status, facts.sinceStart), ' '] : null,
        el('a', {id: 'regions-to-sql', href: view.links.sql(execution)}, `Spark’s page of SQL execution ${execution}`),
        facts.description ? `: ${facts.description}` : '');
    if (!queries.length) return [up, muted('Nothing is known of it: it was not planned by spark_regions, its plan has nothing ',
      'to reuse (a command, a plain relation), or it is older than the queries that are kept (spark.sql.ui.retainedExecutions).')];
    const plans = drawnHere(queries);
    const [main, ...others] = plans;
    const subqueries = others.filter(plan => plan.ran);
    const counting = [main, ...subqueries];
    return [
      up, facts.error ? el('p', {class: 'regions-bad', id: 'regions-failed'}, facts.error) : null,
      summary(facts, counting), cut(counting), picture(main), actions(counting, facts), declines(counting), tables(main),
      subqueries.map(subquery), notRun(others.filter(plan => !plan.ran), facts),
    ];
  };

  /** Plans beyond so many operators have a page of their own. */
  function drawnHere(queries) {
    let operators = 0;
    return queries.map((query, i) => {
      operators += query.operators || 0;
      return view.plan(query, i === 0 || operators <= MOST_OPERATORS ? '' : view.links.query(query.query, -1));
    });
  }

  function summary(facts, plans) {
    const [main] = plans;
    const notes = plans.map(plan => plan.main.regions || {});
    const chosen = notes.map(note => note.chosenSeconds).filter(known);
    const sum = numbers => numbers.reduce((all, number) => all + (number || 0), 0);
    const held = sum(plans.map(plan => plan.observed));
    const refusal = main.main.refusal;
    return cards([
      ['Query', main.number, view.date(facts.time) +
        (facts.subqueries ? `, with ${counted(facts.subqueries, 'subquery', 'subqueries')}` : '')],
      [facts.counted ? 'Done' : 'Decided', el('span', {id: 'regions-done'}, facts.summary || 'nothing'),
        view.leftAlone(facts.declined) + (held ? `, ${held} of them as the mode is observe` : '')],
      [known(facts.saved) ? 'Saving measured' : 'Saving estimated', known(facts.saved) ? seconds(facts.saved)
        : known(facts.estimated) ? seconds(facts.estimated) : '–',
        facts.counted ? `predicted ${seconds(facts.predicted)}` : 'counted once it has run'],
      ['Decided in', millis(facts.planningMillis), `${millis(sum(plans.map(plan => plan.main.plannerMillis)))} of it by the planner` +
        (facts.notRun && facts.counted ? `; ${millis(facts.notRunMillis)} more on ${counted(facts.notRun, 'plan')} not run` : '')],
      known(facts.seconds) ? ['Ran for', seconds(facts.seconds), wall(facts)] : null,
      chosen.length ? ['Run time predicted', seconds(sum(chosen)),
        `Spark’s own plan ${seconds(sum(notes.map(note => note.plainSeconds)))}`] : null,
      known(notes[0].step) ? ['Step of the job', `${notes[0].step} of ${notes[0].steps}`, 'as in its last run'] : null,
      refusal ? ['Nothing decided', el('span', {class: 'regions-bad'}, refusal.code), told(refusal.code, refusal.detail)] : null,
    ]);
  }

  /** Where the wall time went. */
  function wall({wall: parts, taskSeconds}) {
    const split = known((parts || {}).beforeJobs)
      ? `${seconds(parts.beforeJobs)} to plan, ${seconds(parts.inJobs)} in jobs, ${seconds(parts.rest)} between` : '';
    return [split, known(taskSeconds) ? `${seconds(taskSeconds)} of tasks` : ''].filter(Boolean).join('; ');
  }

  /** What the page lacks, as far as the bounds of an event tell. */
  function cut(plans) {
    const truncated = plans.filter(plan => plan.facts.truncated);
    if (!truncated.length) return null;
    const full = name => truncated.some(plan => plan.decisions.some(each => list(each[name]).length >= BOUNDS[name]));
    const labels = truncated.reduce((all, plan) => all + plan.nodes.filter(node => /…$/.test(node.label)).length, 0);
    const said = [
      truncated.some(plan => plan.nodes.length >= BOUNDS.nodes) ? `operators after the first ${BOUNDS.nodes} of a plan` : '',
      full('actions') ? `actions after the first ${BOUNDS.actions}` : '',
      full('declines') ? `reasons after the first ${BOUNDS.declines}` : '',
      labels ? `the labels of ${counted(labels, 'operator')} after ${BOUNDS.text} characters` : '',
    ].filter(Boolean);
    return el('p', {class: 'text-muted small'}, `Left out: ${said.join(', ') || `texts after ${BOUNDS.text} characters`}.`);
  }

  function picture(plan) {
    if (!plan.nodes.length) return muted('The plan is not known.');
    const key = (kind, words) => [el('span', {class: `regions-key regions-key-${kind}`}, words), ' '];
    return [plan.picture(), el('p', {class: 'mb-1 small'},
      key('kept', '▲ kept'), key('read', '▼ read from what was kept'), key('shared', '⇉ computed once for several places'),
      plan.observed ? key('would', '◇ would be done') : null,
      el('span', {class: 'text-muted'}, '✕ left alone, ⚠ could not be done, faint: not computed; the bar is a box’s part of the ',
        'task time.', plan.regions.length ? ' R: regions, which run as one stage, in an order in which they can run; over a ' +
        'dashed thick arrow Spark materializes rows.' : ''))];
  }

  /** The operator of an action, a decline or a node, as a link to its box. */
  function place(plan, item) {
    const node = known(item.node) ? item.node : known(item.id) ? item.id : -1;
    return node < 0 ? item.operator || '' : el('a', {href: plan.link(node)}, `${item.operator} (${node})`);
  }

  /** What a part of the query was expected to take on another engine, and took there. */
  function engine(run) {
    if (!run) return null;
    const words = (time, rows, size) => `${seconds(time)}, ${counted(Math.round(rows), 'row')}, ${bytes(size)}`;
    const took = known(run.measuredSeconds) ? `; took ${words(run.measuredSeconds, run.measuredRows, run.measuredBytes)}` : '';
    return el('span', {class: 'text-muted'}, ` Predicted ${words(run.predictedSeconds, run.predictedRows, run.predictedBytes)}${took}.`);
  }

  const listed = items => items.map((item, i) => (i ? [', ', item] : item));
  const entryLink = name => (name ? el('a', {href: view.links.entry(name)}, digest(name)) : '');
  const actionsOf = plan => [].concat(...plan.decisions.filter(each => each.topic !== 'skew').map(each => list(each.actions)));

  /** What was done in an execution, and what became of it: one row for each place; of subqueries several may share one. */
  function actions(plans, facts) {
    const several = plans.length > 1;
    const number = plan => (several ? [plan.number] : []);
    const rows = [].concat(...plans.map(plan => actionsOf(plan).map(action => {
      const {refusal} = action;
      const isIdle = facts.counted && !refusal && !action.ran;
      const at = each => each.node === action.node;
      const load = view.reads(action) && action.ran ? list(plan.facts.loads).find(at) : null;
      const choice = list(plan.facts.choices).find(each => at(each) && each.kind === action.kind);
      return [
        refusal ? `could not ${action.kind}` : action.kind, place(plan, action), ...number(plan), entryLink(action.entry),
        cells.seconds(action.savingSeconds >= 0 && !isIdle ? action.savingSeconds : null), cells.seconds(choice ? choice.saved : null),
        cells.seconds(load && !choice ? load.estimated : null),
        isIdle ? el('span', {class: 'text-muted'}, 'Not run: the same rows are computed at another place.')
          : refusal ? reason(refusal.code, refusal.detail) : [reason(action.reason, action.detail), engine(action.engine)],
      ];
    })));
    // Reads that stand in a plan since before it was decided on, one row for each entry.
    const before = [].concat(...plans.map(plan => Array.from(grouped(plan.readsBefore, ([name]) => name)).map(([name, places]) => {
      const decided = plans.find(other => other !== plan && actionsOf(other).some(action => action.entry === name));
      return ['read', listed(places.map(([, node]) => place(plan, node))), ...number(plan), entryLink(name), cells.seconds(null),
        cells.seconds(null), cells.seconds(null), el('span', {class: 'text-muted'}, decided ? `As decided on query ${decided.number}, and counted there.`
          : 'Decided on before: on a DataFrame or subquery that this plan is built on.')];
    })));
    const all = [].concat(...plans.map(actionsOf));
    return [
      heading(facts.counted ? 'What was done' : 'What was decided', all.filter(action => action.ran || !facts.counted).length),
      table({id: 'regions-actions', caption: 'Actions and what became of them', empty: 'Nothing was stored, read or shared.',
        columns: ['Action', 'Operator', ...(several ? ['Query'] : []), 'Entry', 'Predicted saving', 'Measured saving', 'Estimated saving', 'Reason'],
        rows: rows.concat(before)}),
    ];
  }

  /** The reasons with how often each was given, what only follows from another choice last. */
  function declines(plans) {
    const all = [].concat(...plans.map(plan => [].concat(...plan.decisions.map(each => list(each.declines)))
      .map(decline => ({plan, decline}))));
    const would = all.filter(({decline}) => decline.code === view.OBSERVED);
    const declined = all.filter(({decline}) => decline.code !== view.OBSERVED);
    const byCode = Array.from(grouped(declined, ({decline}) => decline.code)).sort(mostFrequent);
    const following = byCode.filter(([code]) => view.FOLLOWS.includes(code));
    return [
      would.length ? [heading('What would have been done', would.length),
        muted('The mode is observe (spark.regions.mode): queries run as Spark planned them.'),
        table({id: 'regions-observed', caption: 'Actions that the mode observe held back', columns: ['Operator', 'Query', 'Action'],
          rows: would.map(({plan, decline}) => [place(plan, decline), plan.number, decline.detail])})] : null,
      heading('What was left alone, and why', declined.length),
      el('div', {id: 'regions-declines'}, declined.length ? null : muted('Nothing was declined.'),
        byCode.filter(([code]) => !view.FOLLOWS.includes(code)).map(reasons),
        following.length ? fold(el('span', {}, `Because of another choice — ${following.reduce((sum, [, group]) =>
          sum + group.length, 0)}`), following.map(reasons)) : null),
    ];
  }

  const mostFrequent = ([a, many], [b, others]) => others.length - many.length || (a < b ? -1 : 1);

  function reasons([code, group]) {
    const details = Array.from(grouped(group, ({decline}) => decline.detail || '')).sort(mostFrequent);
    return fold(el('span', {}, reason(code, ''), ` — ${counted(group.length, 'operator')}`),
      el('ul', {class: 'mb-1'}, details.map(([detail, same]) => el('li', {}, detail ? `${detail}: ` : '',
        listed(same.map(({plan, decline}) => place(plan, decline)))))));
  }

  const tables = plan => [view.skewTable(plan.facts), regions(plan), operators(plan)];

  function subquery(plan) {
    const {operators: size, planningMillis, predicted, saved, estimated} = plan.facts;
    const title = [el('h4', {class: 'd-inline'}, `Subquery ${plan.number}`), el('span', {class: 'text-muted'},
      ` ${counted(size || 0, 'operator')}, decided in ${millis(planningMillis || 0)}, saving predicted ${seconds(predicted || 0)}`,
      known(saved) ? `, measured ${seconds(saved)}` : known(estimated) ? `, estimated ${seconds(estimated)}` : '')];
    return fold(title, plan.page ? el('p', {}, el('a', {href: plan.page}, 'Its plan has a page of its own.'))
      : [picture(plan), tables(plan)]);
  }

  /** Plans that Spark made on the way, with a page of their own each. */
  function notRun(plans, facts) {
    if (!plans.length) return null;
    const many = counted(plans.length, 'plan');
    return fold(el('h4', {class: 'd-inline'}, facts.counted ? `${many} planned once more and not run` : `${many} so far of its subqueries`),
      table({id: 'regions-not-run', caption: 'Plans of this execution that did not run',
        columns: ['Query', 'Operators', 'Decided in', 'Left alone'],
        rows: plans.map(({facts: query}) => [view.toQuery(query.query, -1), cells.count(query.operators),
          cells.millis(query.planningMillis), cells.count(query.declined)])}));
  }

  function regions(plan) {
    if (!plan.regions.length) return null;
    return section('Regions', plan.regions.length, table({
      id: `${plan.id}-regions`, caption: 'Regions in the order in which they run',
      columns: ['Region', 'Operators', ['Reads', 'What Spark materialized between this one and others'],
        plan.stagesKnown ? ['Task seconds', 'Measured, of all tasks together'] : ['Predicted', 'Seconds on all cores']],
      rows: plan.regions.map(each => [cell(`R${each.number}`, each.number), each.operators.join(', '), each.reads.join(', '),
        cells.seconds(plan.stagesKnown ? each.seconds : each.predicted)]),
    }));
  }

  function operators(plan) {
    return section('Operators', plan.nodes.length, table({
      id: `${plan.id}-operators`, caption: 'Operators of the plan', filtered: plan.nodes.length > 20,
      columns: ['Id', 'Operator', 'Region', 'Feeds on', 'Rows', 'Size', ['Task seconds', 'Of the operator alone'], 'Done', 'Label'],
      rows: plan.nodes.map(node => [
        cell(el('a', {id: plan.rowId(node.id), href: plan.link(node.id)}, String(node.id)), node.id), node.operator,
        plan.region(node) > 0 ? `R${plan.region(node)}` : '', list(node.children).join(', '), cells.count(node.rows),
        cells.bytes(node.bytes), cells.seconds(node.seconds), plan.isIdle(node) ? 'not computed' : plan.done(node), node.label,
      ]),
    }));
  }
})(window.regionsView);
