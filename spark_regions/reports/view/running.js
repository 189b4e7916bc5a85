/* What runs, of an application under control: drawn anew each second, with buttons for who may modify. */
(function (view) {
  'use strict';
  const {el, count, cell, cells, list, heading, muted, table, pages} = view;
  const BY = 'the Regions tab';
  const EVERY = 1000;
  const LAST = 100;

  pages.running = function (facts) {
    if (facts.error) return muted(facts.error);
    const shown = el('div', {id: 'regions-running'});
    const said = el('p', {id: 'regions-said', role: 'status', 'aria-live': 'polite'});
    const draw = now => shown.replaceChildren(...parts(now, command).flat());

    async function command(name, fields) {
      said.className = '';
      said.textContent = `${name} …`;
      try {
        const answer = await fetch(`${view.links.page('control')}?seconds=5`, {method: 'POST',
          headers: {'Content-Type': 'application/json'}, body: JSON.stringify(Object.assign({command: name, by: BY}, fields))});
        const told = await answer.json();
        said.className = told.error ? 'regions-bad' : '';
        said.textContent = told.error || (name === 'pause' ? `${told.standing} tasks stand, ${list(told.running).length} still run` : '');
      } catch (error) {
        said.className = 'regions-bad';
        said.textContent = String(error);
      }
      look();
    }

    async function look() {
      try {
        const now = await (await fetch(view.links.json('running'))).json();
        if (now.error) throw new Error(now.error);
        draw(now);
      } catch (error) {
        shown.replaceChildren(el('p', {class: 'regions-bad'}, `No answer from the application: ${error.message}`));
      }
    }

    draw(facts);
    setInterval(() => { if (!document.hidden) look(); }, EVERY);
    const operator = el('input', {id: 'regions-break-operator', class: 'form-control form-control-sm regions-filter', placeholder: 'Filter'});
    const condition = el('input', {id: 'regions-break-condition', class: 'form-control form-control-sm regions-filter',
      placeholder: 'followers < 0, or count(*) = 1000'});
    return [
      el('p', {}, ['pause', 'resume', 'takeover', 'leave'].map(name => [
        button(name === 'takeover' ? 'take over' : name, () => command(name), `regions-${name}`), ' '])),
      said,
      el('form', {id: 'regions-break', class: 'mb-2'}, el('label', {class: 'me-2', for: operator.id}, 'Stop at rows of'), operator,
        el('label', {class: 'mx-2', for: condition.id}, 'where'), condition, ' ', el('button', {class: 'btn btn-sm btn-secondary'}, 'break')),
      shown,
    ].map(part => {
      if (part.id === 'regions-break') {
        part.addEventListener('submit', event => {
          event.preventDefault();
          command('break', {operator: operator.value, condition: condition.value});
        });
      }
      return part;
    });
  };

  function button(words, press, id) {
    const made = el('button', {type: 'button', class: 'btn btn-sm btn-secondary', id}, words);
    made.addEventListener('click', press);
    return made;
  }

  function parts({state, note, operators, tasks, params, changes, badRows}, command) {
    const passed = id => tasks.reduce((sum, task) => sum + (task.rows[id] || 0), 0);
    const given = new Map(operators.map(each => [each.id, each.passed + passed(each.id)]));
    const condition = point => (!point.target ? point.sql : point.sql ? `sum(${point.sql}) >= ${point.target}` : `count(*) = ${point.target}`);
    return [
      el('p', {id: 'regions-state'}, el('strong', {}, state.paused ? 'paused' : 'running'),
        state.controller ? `, in control of ${state.controller}` : '', note ? `: ${note}` : ''),
      heading('Operators of queries that run', operators.length),
      table({
        id: 'regions-live', caption: 'Operators, with their rows so far', empty: 'No query runs.',
        columns: ['Query', 'Operator', ['Rows in', 'Given by the operators below'], 'Rows out', 'Tasks', 'Detail'],
        rows: operators.map(each => [
          cell(el('a', {href: view.links.sql(each.query)}, String(each.query)), each.query), each.name,
          each.inputs.length ? cells.count(each.inputs.reduce((sum, id) => sum + given.get(id), 0)) : cells.unknown(),
          cells.count(given.get(each.id)), cells.count(tasks.filter(task => each.id in task.rows).length), each.detail,
        ]),
      }),
      heading('Tasks', tasks.length),
      table({
        id: 'regions-tasks', caption: 'Tasks that have come to an operator', empty: 'No task runs.',
        columns: ['Stage', 'Partition', 'Attempt', 'Executor', 'Stands', 'At', ['Row', 'The next one, as Spark shows values']],
        rows: tasks.map(task => [cells.count(task.stage), cells.count(task.partition), cells.count(task.attempt), task.executor,
          task.stands ? 'stands' : 'runs', task.at, values(task.row)]),
      }),
      list(state.breakpoints).length ? [heading('Breakpoints', state.breakpoints.length), table({
        id: 'regions-breakpoints', caption: 'Breakpoints', columns: ['Number', 'Operator', 'Condition', 'Then', ''],
        rows: state.breakpoints.map(point => [cells.count(point.number), point.operator, condition(point), point.action,
          button('clear', () => command('clear', {number: point.number}))]),
      })] : [],
      list(state.held).length ? [heading('Rows that wait', state.held.length), table({
        id: 'regions-rows', caption: 'Rows at breakpoints, and bad ones', columns: ['Row', 'Operator', 'Why', 'Values', 'Answer', ''],
        rows: state.held.map(row => [name(row), row.operator, row.error ? `${row.why}: ${row.error}` : row.why,
          values(row.values), row.answer || '', answers(row).map(action => [button(action, () => answered(row, action, command)), ' '])]),
      })] : [],
      Object.keys(params).length ? [heading('Values that can be changed', Object.keys(params).length), table({
        id: 'regions-params', caption: 'Parameters', columns: ['Name', 'Type', 'Value'],
        rows: Object.entries(params).map(([name, {type, value}]) => [name, type, value]),
      })] : [],
      changes.length ? [heading('Values that tasks took', changes.length), table({
        id: 'regions-changes', caption: `The last ${LAST}, the newest first`,
        columns: ['Name', 'Value', ['Row', 'The first that was computed with it'], 'Stage', 'Partition', 'Attempt',
          ['Replayed', 'At the row at which an earlier attempt took it']],
        rows: changes.slice(-LAST).reverse().map(each => [each.name, each.value, ...['row', 'stage', 'partition', 'attempt'].map(number =>
          cells.count(each[number])), each.reason ? `no: ${each.reason}` : each.replayed ? 'yes' : '']),
      })] : [],
      badRows ? el('p', {id: 'regions-bad-rows'}, `${count(badRows)} bad rows so far: `, el('code', {}, 'SELECT * FROM spark_regions_bad_rows()')) : [],
    ];
  }

  const name = row => `${row.attempt.stage}.${row.attempt.partition}.${row.attempt.number}`;
  const answers = row => ['skip', row.nullable && 'null', Object.keys(row.types || {}).length && 'fix', 'fail'].filter(Boolean);

  function answered(row, action, command) {
    const fields = {row: name(row), action};
    if (action === 'fix') {
      const types = Object.entries(row.types).map(([column, type]) => `${column} ${type}`);
      const text = window.prompt(types.length > 1 ? `COLUMN=VALUE, of ${types.join(', ')}` : `Value of ${types[0]}`, '');
      if (text === null) return;
      const [column, ...rest] = types.length > 1 ? text.split('=') : ['', text];
      // One column at a time: those that were given before stay.
      const value = rest.join('=');
      fields.values = {[column.trim()]: types.length > 1 && value === 'NULL' ? null : value};
    }
    command('answer', fields);
  }

  const values = row => (Array.isArray(row) ? row : Object.entries(row)).map(([name, value]) => `${name} = ${value}`).join(', ');
})(window.regionsView);
