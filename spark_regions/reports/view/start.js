/* Draws the page whose JSON stands in it: {page, root: of the UI, null in a report, zone, reasons: code to sentence, data, failed}. */
(function (view) {
  'use strict';
  const {el} = view;
  const target = document.getElementById('regions-view');
  const shell = JSON.parse(document.getElementById('regions-data').textContent);
  Object.assign(view, {root: shell.root, zone: shell.zone, reasons: shell.reasons});

  const failed = why => el('p', {class: 'regions-bad', role: 'alert'}, `This page could not be made: ${why}. The log of the driver `,
    '(of the History Server for a past application) has more; the application itself is not concerned.');

  function content() {
    if (shell.failed) return failed(shell.failed);
    try {
      return view.pages[shell.page](shell.data);
    } catch (error) {
      console.error(error);
      return failed(error);
    }
  }

  const inTab = shell.root !== null;
  target.textContent = '';
  target.append(el('div', {},
    inTab ? el('nav', {'aria-label': 'Regions pages'}, el('ul', {class: 'nav nav-pills mb-3'}, view.navigation.map(([path, name]) => {
      const here = path === shell.page;
      return el('li', {class: 'nav-item'}, el('a', {class: `nav-link py-1${here ? ' active' : ''}`, href: view.links.page(path),
        'aria-current': here ? 'page' : null}, name));
    }))) : null,
    [content()],
    inTab ? el('p', {class: 'mt-3'}, el('a', {href: view.links.json(shell.page) + location.search}, 'The same as JSON')) : null));
  view.pictures.forEach(picture => picture.opened());

  /** A link to a box moves the picture to it; a row is taken out of its fold. */
  function follow() {
    const id = decodeURIComponent(location.hash.slice(1));
    const picture = id && view.pictures.find(each => each.has(id));
    const found = picture ? picture.canvas : document.getElementById(id);
    if (!id || !found) return;
    for (let fold = found.closest('details'); fold; fold = fold.parentNode.closest('details')) fold.open = true;
    if (picture) picture.show(id);
    (picture ? found.parentNode : found).scrollIntoView({block: 'center'});
  }
  window.addEventListener('hashchange', follow);
  document.addEventListener('click', event => {
    const link = event.target.closest && event.target.closest('a[href^="#"]');
    // The same link once more changes no hash.
    if (!link || link.getAttribute('href') !== location.hash || event.defaultPrevented) return;
    event.preventDefault();
    follow();
  });
  follow();
})(window.regionsView);
