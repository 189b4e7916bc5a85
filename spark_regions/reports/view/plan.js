/* One plan: operators in the colours of their regions, what is kept between them, and what was done at each. */
(function (view) {
  'use strict';
  const {known, list, grouped, counted, percent, seconds, bytes, sentence} = view;
  const OBSERVED = 'OBSERVE_ONLY';
  /** Codes that only say that something else was chosen, or declined. */
  const FOLLOWS = ['ALREADY_STORED_ABOVE', 'ALREADY_STORED_BELOW', 'NOT_CHOSEN', 'SUBQUERY_DECIDED', 'CHILD_REFUSED'];
  /** A plan of more operators is drawn with stacks: undecided neighbours in one box. */
  const MOST_BOXES = 150;
  /** Operators that come out of a stack at once. */
  const UNFOLDED = 40;

  const reads = action => (action.kind === 'load' || action.kind === 'recall') && !action.refusal;
  const isMain = decision => Boolean(decision.session) && !decision.topic;

  /** The entry that a node of the plan reads or writes, put there before the plan was signed. */
  const READS = ['MaterializedRead', 'Recycled'];
  const entryOf = node => (READS.includes(node.operator) || node.operator === 'Tee'
    ? (/\[entry ([^\]]+)\]/.exec(node.label || '') || [])[1] : undefined);

  /**
   * @param facts one of the `queries` of an execution
   * @param page where the plan is drawn, empty for the page at hand
   */
  view.plan = function (facts, page = '') {
    const id = `regions-plan-${facts.query}`;
    const nodes = list(facts.nodes);
    const byId = new Map(nodes.map(node => [node.id, node]));
    const decisions = list(facts.decisions);
    // The decision before the query ran; later ones say what turned out.
    const main = decisions.find(isMain) || {};
    const planned = list((main.regions || {}).regions);
    const plannedById = new Map(planned.map(each => [each.id, each]));
    /** Whether it is known which of Spark's stages ran which operators. */
    const ran = nodes.some(node => known(node.region));
    const regionOf = new Map(ran ? nodes.filter(node => known(node.region)).map(node => [node.id, node.region])
      : [].concat(...planned.map(region => list(region.nodes).map(node => [node, region.id]))));
    const actionsAt = grouped(list(main.actions), action => action.node);
    const declinesAt = grouped(list(main.declines), decline => decline.node);
    // What stands below a result that is read was not computed.
    const idle = below(list(main.actions).filter(reads).map(action => action.node));
    const shown = nodes.filter(node => !idle.has(node.id));
    const parentOf = new Map();
    shown.forEach(node => list(node.children).forEach(child => { if (!parentOf.has(child)) parentOf.set(child, node); }));
    const allSeconds = shown.reduce((sum, node) => sum + (node.seconds || 0), 0);
    const region = node => regionOf.get(node.id) || 0;
    const name = node => `${node.operator} (${node.id})`;
    const boxId = node => `${id}-box-${node}`;
    const rowId = node => `${id}-node-${node}`;
    const doneAt = new Map(nodes.map(node => [node.id, done(node)]));
    const regions = ran ? regionsThatRan() : regionsExpected();
    const unfolded = new Set();
    let all = shown.length <= MOST_BOXES;

    return {
      facts, page, id, nodes, decisions, main, ran: facts.partOf >= 0, stagesKnown: ran, regions, region, rowId,
      number: String(facts.query),
      done: node => doneAt.get(node.id).words,
      isIdle: node => idle.has(node.id),
      /** Reads that stand in the plan since before it was decided on: [entry, node]. */
      readsBefore: shown.filter(node => READS.includes(node.operator) && entryOf(node)).map(node => [entryOf(node), node]),
      /** Actions that the mode observe held back. */
      observed: [].concat(...decisions.map(each => list(each.declines))).filter(each => each.code === OBSERVED).length,
      /** Where a node is on the page: its box, or its row where what stands below a read is not drawn. */
      link: node => page + (byId.has(node) && !idle.has(node) ? `#${boxId(node)}` : `#${rowId(node)}`),
      picture: () => view.picture({
        id,
        title: `Plan of query ${facts.query}: ${nodes.length} operators in ${regions.length} regions`,
        summary: 'The table “Operators” below has the same facts in words.',
        drawn,
        folding: all ? null : {all: shown.length, reveal, toggle: every => { all = every; }},
      }),
    };

    /** All nodes that stand below some, those too that were cut from the plan. */
    function below(tops) {
      const found = new Set();
      const open = [].concat(...tops.map(top => list((byId.get(top) || {}).children)));
      while (open.length) {
        const node = open.pop();
        if (found.has(node)) continue;
        found.add(node);
        open.push(...list((byId.get(node) || {}).children));
      }
      return found;
    }

    /** What was done at a node, or why nothing was; what only follows from another choice is said in the list alone. */
    function done(node) {
      const [action] = actionsAt.get(node.id) || [];
      if (action) return badge(action);
      const entry = entryOf(node);
      if (entry) {
        const short = entry.slice(0, 9);
        return node.operator === 'Tee' ? {words: `▲ stored ${short}`, kind: 'kept'} : {words: `▼ read ${short}`, kind: 'read'};
      }
      const declines = declinesAt.get(node.id) || [];
      const decline = declines.find(each => each.code === OBSERVED) || declines[0];
      if (!decline || FOLLOWS.includes(decline.code)) return {words: '', kind: ''};
      return decline.code === OBSERVED ? {words: `◇ ${decline.detail}`, kind: 'would'}
        : {words: `✕ ${sentence(decline.code) || decline.code}`, kind: 'declined'};
    }

    function badge(action) {
      const entry = (action.entry || '').slice(0, 9);
      if (action.refusal) return {words: `⚠ no ${action.kind}: ${action.refusal.code}`, kind: 'lost'};
      return {
        load: {words: `▼ loaded ${entry}`, kind: 'read'},
        recall: {words: `▼ recalled ${entry}`, kind: 'read'},
        store: {words: `▲ stored ${entry}`, kind: 'kept'},
        persist: {words: `▲ persisted ${entry}`, kind: 'kept'},
        share: {words: '⇉ computed once', kind: 'shared'},
      }[action.kind] || {words: action.kind, kind: 'kept'};
    }

    /** In the order in which they run. */
    function regionsThatRan() {
      return Array.from(grouped(nodes.filter(node => region(node) > 0), region)).sort(([a], [b]) => a - b)
        .map(([number, members]) => {
          const children = [].concat(...members.map(node => list(node.children))).map(child => byId.get(child)).filter(Boolean);
          const others = children.filter(child => region(child) !== 0 && region(child) !== number);
          return {number, operators: members.map(name), predicted: null,
            seconds: members.reduce((sum, node) => sum + (node.seconds || 0), 0),
            reads: Array.from(new Set(others.map(child => `${crossing(child)} of R${region(child)}`)))};
        });
    }

    function regionsExpected() {
      return planned.map(each => ({number: each.id, operators: list(each.operators), predicted: each.seconds, seconds: null,
        reads: list(each.inputs).map(input => `${expected(input.label)} of R${input.region}`)}));
    }

    function expected(label) { return ['shuffle', 'broadcast'].includes(label) ? `expected ${label}` : label; }

    /** What Spark materialized of a node's rows for the operator above it. */
    function crossing(node) {
      return `${node.exchange || ''} ${known(node.exchangeBytes) ? bytes(node.exchangeBytes) : ''}`.trim();
    }

    function label(under, above) {
      if (ran) return crossing(under);
      const [from, to] = [region(under), region(above)];
      if (!from || !to || from === to) return '';
      const input = list((plannedById.get(to) || {}).inputs).find(each => each.region === from);
      return input ? expected(input.label) : '';
    }

    /** What is drawn: what ran, and for each result that was read one box for all that it spared. */
    function drawn() {
      const units = stacked();
      const boxes = units.map(unit => (unit.length > 1 ? stack(unit) : box(unit[0])));
      const at = new Map();
      units.forEach((unit, i) => unit.forEach(node => at.set(node.id, i)));
      const arrows = new Map();
      shown.forEach(above => list(above.children).filter(child => at.has(child)).forEach(child => {
        const [from, to] = [at.get(child), at.get(above.id)];
        if (from === to || arrows.has(`${from} ${to}`)) return;
        const text = label(byId.get(child), above);
        arrows.set(`${from} ${to}`, {from, to, label: text, kept: Boolean(text)});
      }));
      shown.forEach(node => {
        // Few have only idle children: what is below all of the others need not be counted.
        if (!list(node.children).length || !list(node.children).every(child => idle.has(child))) return;
        const spared = Array.from(below([node.id])).filter(child => byId.has(child)).length;
        if (!spared) return;
        const words = counted(spared, 'operator');
        boxes.push({id: `${id}-spared-${node.id}`, lines: [words, 'not computed'], idle: true,
          hint: `${words} below were not computed`, anchor: `#${id}-operators`});
        arrows.set(`spared ${node.id}`, {from: boxes.length - 1, to: at.get(node.id), label: '', kept: false});
      });
      return {boxes, arrows: Array.from(arrows.values())};
    }

    /** The drawn nodes in their order; each by itself, or those of a large plan in stacks. */
    function stacked() {
      if (all) return shown.map(node => [node]);
      const alone = node => view.DECIDED.includes(doneAt.get(node.id).kind) || unfolded.has(node.id);
      return view.stacks(shown, {alone, region, most: MOST_BOXES, parentOf: node => parentOf.get(node.id)});
    }

    /** Takes a node out of its stack, with those around it. */
    function reveal(box) {
      const node = shown.find(each => boxId(each.id) === box);
      const unit = node && stacked().find(each => each.includes(node));
      if (!unit) return false;
      const middle = unit.indexOf(node);
      unit.slice(Math.max(0, middle - UNFOLDED / 2), middle + UNFOLDED / 2).forEach(each => unfolded.add(each.id));
      return true;
    }

    function box(node) {
      const {words, kind} = doneAt.get(node.id);
      const number = region(node);
      const share = known(node.seconds) && allSeconds > 0 ? node.seconds / allSeconds : 0;
      const codes = Array.from(new Set((declinesAt.get(node.id) || []).map(each => each.code))).join(', ');
      const facts = measured(node);
      return {
        id: boxId(node.id),
        lines: [name(node), view.operatorWords(node.operator, node.label), facts].filter(Boolean),
        corner: number > 0 ? `R${number}` : '',
        tone: number > 0 && number % 2 === 0 ? 'even' : '',
        badge: words,
        kind,
        hint: [name(node) + (number > 0 ? `, region ${number}` : ''), facts,
          share >= 0.005 ? `${percent(share)} of the query's task time` : '', words, codes, node.label].filter(Boolean).join('\n'),
        anchor: `#${rowId(node.id)}`,
        share,
        weight: share,
      };
    }

    function stack(unit) {
      const numbers = Array.from(new Set(unit.map(region))).filter(number => number > 0).sort((a, b) => a - b);
      const names = Array.from(grouped(unit, node => node.operator)).sort(([, a], [, b]) => b.length - a.length)
        .map(([operator, members]) => `${operator} ×${members.length}`);
      const spent = unit.reduce((sum, node) => sum + (node.seconds || 0), 0);
      const share = allSeconds > 0 ? spent / allSeconds : 0;
      const facts = spent > 0 ? seconds(spent) : '';
      const declined = unit.filter(node => declinesAt.has(node.id)).length;
      const left = declined ? `✕ ${declined} left alone` : '';
      return {
        id: `${id}-stack-${unit[0].id}`,
        lines: [counted(unit.length, 'operator'), names.join(', '), facts].filter(Boolean),
        corner: numbers.length ? `R${numbers[0]}${numbers.length > 1 ? `–${numbers[numbers.length - 1]}` : ''}` : '',
        tone: numbers.length && numbers[0] % 2 === 0 ? 'even' : '',
        badge: left,
        kind: left ? 'declined' : '',
        hint: [`${counted(unit.length, 'operator')} from ${name(unit[0])}`, facts, left, ...names].filter(Boolean).join('\n'),
        anchor: `#${id}-operators`,
        share,
        weight: share,
        unfold: () => reveal(boxId(unit[0].id)) && boxId(unit[0].id),
      };
    }

    /** Rows, bytes and task-seconds, as far as Spark counted them. */
    function measured(node) {
      return [known(node.rows) ? `${view.count(node.rows)} ${node.rows === 1 ? 'row' : 'rows'}` : '',
        known(node.bytes) ? bytes(node.bytes) : '', known(node.seconds) ? seconds(node.seconds) : ''].filter(Boolean).join(' · ');
    }
  };

  Object.assign(view, {reads, OBSERVED, FOLLOWS});
})(window.regionsView);
