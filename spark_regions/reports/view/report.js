/* A report on an event log: the overview's figures, then what the text has, the best candidates, and two plots. */
(function (view) {
  'use strict';
  const {el, svg, cards, table} = view;
  const WIDTH = 380;
  const HEIGHT = 340;
  const PAD = 46;

  view.pages.report = facts => [
    el('p', {class: 'headline'}, facts.headline),
    facts.notes.map(note => el('p', {role: 'note'}, note)),
    cards(view.savedCards(facts)),
    facts.sections.map(({title, rows, hint}) => [
      el('h2', {}, title),
      el('table', {class: 'regions-facts'}, el('tbody', {}, rows.map(([name, told]) =>
        el('tr', {}, el('th', {scope: 'row'}, name), el('td', {}, told))))),
      hint ? el('p', {class: 'hint'}, hint) : null,
    ]),
    view.reasonsSection(facts.declines),
    facts.candidates.rows.length ? [
      el('h2', {}, 'Best candidates'),
      table({id: 'regions-candidates', caption: 'Best candidates', columns: facts.candidates.columns, rows: facts.candidates.rows}),
      el('p', {class: 'hint'}, facts.candidates.hint),
    ] : null,
    el('h2', {}, 'Predicted against measured'),
    facts.plots.length ? el('div', {class: 'plots'}, facts.plots.map(plot => el('figure', {}, scatter(plot))))
      : el('p', {}, 'No query has both.'),
  ];

  /** Points around the diagonal, with a text for those who cannot see it. */
  function scatter({title, points}) {
    const most = Math.max(0.1, ...points.map(point => Math.max(...point))) * 1.05;
    const least = Math.min(0, ...points.map(point => Math.min(...point)));
    const x = value => PAD + (value - least) / (most - least) * (WIDTH - 2 * PAD);
    const y = value => HEIGHT - PAD - (value - least) / (most - least) * (HEIGHT - 2 * PAD);
    const step = nice((most - least) / 4);
    const ticks = [];
    for (let i = Math.ceil(least / step); i * step <= most; i += 1) ticks.push(i * step);
    const sum = at => points.reduce((all, point) => all + point[at], 0).toFixed(1);
    const text = (attributes, words) => svg('text', Object.assign({class: 'regions-tick'}, attributes), words);
    return svg('svg', {class: 'regions-plot', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img',
      'aria-label': `${title}: ${points.length} points, ${sum(0)} s predicted, ${sum(1)} s measured in all`},
    text({x: WIDTH / 2, y: 18, class: 'regions-name'}, title),
    ticks.map(at => [
      svg('path', {class: 'regions-grid', d: `M${x(at)},${y(least)} V${y(most)} M${x(least)},${y(at)} H${x(most)}`}),
      text({x: x(at), y: y(least) + 16}, String(+at.toPrecision(6))),
      text({x: x(least) - 14, y: y(at) + 4}, String(+at.toPrecision(6))),
    ]),
    svg('path', {class: 'regions-diagonal', d: `M${x(least)},${y(least)} L${x(most)},${y(most)}`}),
    points.map(([predicted, measured]) => svg('circle', {class: 'regions-point', cx: x(predicted), cy: y(measured), r: 3.5})),
    text({x: WIDTH / 2, y: HEIGHT - 8}, 'predicted, s'),
    text({transform: `translate(12,${HEIGHT / 2}) rotate(-90)`}, 'measured, s'));
  }

  /** The next of 1, 2, 5 and their powers of ten. */
  function nice(step) {
    const power = Math.pow(10, Math.floor(Math.log10(step)));
    return [1, 2, 5, 10].find(each => each * power >= step) * power;
  }
})(window.regionsView);
