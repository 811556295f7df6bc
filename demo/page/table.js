// The table: a window of rows over any number of objects. An event touches one row's model; the document is brought up
// to date once a frame, and only where the rows in view differ.

import { duration } from './age.js';

// Rows kept above and below what is in view, so that scrolling shows no gap.
const OVERSCAN = 12;
const LEAVE_MS = 600;
const FLASH_MS = 1600;
const CONDITIONS_SHOWN = 3;
// Sorting gets at most this share of the time, however large the scope and however fast its changes.
const ORDER_SHARE = 4;

export class Table {
  #rows;
  #onSelect;
  #onDraw;
  #frame = document.getElementById('objects-frame');
  #table = document.getElementById('table');
  #body = document.getElementById('rows');
  #headers = [...document.querySelectorAll('#table th')];
  #above = spacer();
  #below = spacer();
  /** @type {Map<string, HTMLTableRowElement & { shown: object }>} */
  #mounted = new Map();
  #rowHeight = 0;
  #scheduled = false;
  #orderAfter = 0;
  #selected = null;
  #cursor = null;
  #still = matchMedia('(prefers-reduced-motion: reduce)');

  /**
   * @param {import('./rows.js').Rows} rows
   * @param {{ onSelect(key: string): void, onDraw(): void }} listener
   */
  constructor(rows, { onSelect, onDraw }) {
    this.#rows = rows;
    this.#onSelect = onSelect;
    this.#onDraw = onDraw;
    this.#body.append(this.#above, this.#below);
    this.#rowHeight = Number.parseFloat(getComputedStyle(this.#table).getPropertyValue('--row-height'));
    this.#frame.addEventListener('scroll', () => this.schedule(), { passive: true });
    new ResizeObserver(() => this.schedule()).observe(this.#frame);
    this.#body.addEventListener('click', (event) => {
      const row = event.target.closest('tr[data-uid]');
      if (row !== null) {
        this.#choose(row.shown.key);
      }
    });
    this.#table.addEventListener('keydown', (event) => this.#key(event));
    for (const header of this.#headers) {
      header.querySelector('button')?.addEventListener('click', () => {
        this.#rows.sortBy(header.dataset.column);
        this.#showSort();
        this.schedule();
      });
    }
  }

  /** Takes an object away, fading where it is in view. */
  remove(key) {
    if (!this.#mounted.has(key) || this.#still.matches) {
      this.#rows.drop(key);
      return;
    }
    this.#rows.leave(key);
    setTimeout(() => {
      if (this.#rows.get(key)?.leaving) {
        this.#rows.drop(key);
        this.schedule();
      }
    }, LEAVE_MS);
  }

  /** Shows which row the panel is about. */
  select(key) {
    this.#selected = key;
    this.#cursor = key ?? this.#cursor;
    this.schedule();
  }

  scrollToTop() {
    this.#frame.scrollTop = 0;
    this.#cursor = null;
  }

  /** Draws in the next frame. */
  schedule() {
    if (!this.#scheduled) {
      this.#scheduled = true;
      requestAnimationFrame(() => {
        this.#scheduled = false;
        this.#draw();
        this.#onDraw();
      });
    }
  }

  /** Brings the ages up to date, which is no reason to draw anything else. */
  tick() {
    const now = Date.now();
    for (const element of this.#mounted.values()) {
      showAges(element, now);
    }
  }

  #draw() {
    this.#order();
    const visible = this.#rows.visible;
    const height = this.#rowHeight;
    const first = Math.max(0, Math.floor(this.#frame.scrollTop / height) - OVERSCAN);
    const count = Math.ceil(this.#frame.clientHeight / height) + 2 * OVERSCAN;
    const last = Math.min(visible.length, first + count);
    const start = Math.max(0, Math.min(first, last - count));

    const wanted = new Set();
    for (let index = start; index < last; index += 1) {
      wanted.add(visible[index].key);
    }
    for (const [key, element] of this.#mounted) {
      if (!wanted.has(key)) {
        element.remove();
        this.#mounted.delete(key);
      }
    }

    const now = Date.now();
    const news = [];
    let place = this.#above.nextSibling;
    for (let index = start; index < last; index += 1) {
      const row = visible[index];
      const element = this.#mounted.get(row.key) ?? this.#mount(row);
      if (element === place) {
        place = place.nextSibling;
      } else {
        this.#body.insertBefore(element, place);
      }
      if (this.#show(element, row, index, now)) {
        news.push(element);
      }
    }
    this.#above.firstChild.style.height = `${start * height}px`;
    this.#below.firstChild.style.height = `${(visible.length - last) * height}px`;
    this.#above.hidden = start === 0;
    this.#below.hidden = visible.length === last;
    this.#table.setAttribute('aria-rowcount', String(visible.length + 1));
    this.#table.dataset.conditions = String(this.#rows.haveConditions);
    // Last, since it asks for the layout: of half-moved rows that would be another height, and would move the scroll.
    flash(news);
    const active = this.#cursor === null ? undefined : this.#mounted.get(this.#cursor);
    if (active) {
      this.#table.setAttribute('aria-activedescendant', active.id);
    } else {
      this.#table.removeAttribute('aria-activedescendant');
    }
  }

  #order() {
    if (!this.#rows.orderIsOld) {
      return;
    }
    const start = performance.now();
    if (start < this.#orderAfter) {
      this.schedule();
      return;
    }
    this.#rows.order();
    const end = performance.now();
    this.#orderAfter = end + (end - start) * ORDER_SHARE;
  }

  #mount(row) {
    const element = document.createElement('tr');
    element.id = `row-${row.uid}`;
    element.dataset.uid = row.uid;
    for (const column of ['name', 'namespace', 'status', 'conditions', 'age', 'changed']) {
      const cell = document.createElement('td');
      cell.dataset.column = column;
      element.append(cell);
    }
    const [, , status] = element.cells;
    const dot = document.createElement('span');
    dot.className = 'dot';
    dot.setAttribute('aria-hidden', 'true');
    status.append(dot, document.createElement('span'));
    element.shown = { key: row.key, version: -1, status: null };
    this.#mounted.set(row.key, element);
    return element;
  }

  /** Brings a row's element up to date; returns whether a change is to be shown. */
  #show(element, row, index, now) {
    element.setAttribute('aria-rowindex', String(index + 2));
    element.setAttribute('aria-selected', String(row.key === this.#selected));
    element.classList.toggle('cursor', row.key === this.#cursor);
    element.classList.toggle('leaving', row.leaving);
    if (element.shown.version === row.version) {
      return false;
    }
    element.shown.version = row.version;
    element.shown.row = row;
    const [name, namespace, status, conditionCell] = element.cells;
    setText(name, row.name);
    setText(namespace, row.namespace);
    setText(status.lastChild, row.summary.text);
    status.title = row.summary.text;
    status.dataset.tone = row.summary.tone;
    showConditions(conditionCell, row.conditions);
    element.dataset.changes = String(row.changes);
    showAges(element, now);

    // A row that comes into view later than this has no news any more.
    const news = row.flash !== null && now - row.changedAt < FLASH_MS;
    if (news) {
      element.dataset.flash = row.flash;
      if (element.shown.status !== null && element.shown.status !== row.summary.text) {
        element.dataset.statusChanged = 'true';
      }
    }
    row.flash = null;
    element.shown.status = row.summary.text;
    return news;
  }

  #choose(key) {
    this.#cursor = key;
    this.#table.focus({ preventScroll: true });
    this.#onSelect(key);
  }

  #key(event) {
    if (event.target !== this.#table) {
      return;
    }
    const visible = this.#rows.visible;
    const page = Math.max(1, Math.floor(this.#frame.clientHeight / this.#rowHeight) - 2);
    const at = visible.findIndex((row) => row.key === this.#cursor);
    const moves = {
      ArrowDown: at + 1,
      ArrowUp: at < 0 ? 0 : at - 1,
      PageDown: Math.max(at, 0) + page,
      PageUp: at - page,
      Home: 0,
      End: visible.length - 1,
    };
    if (Object.hasOwn(moves, event.key) && visible.length > 0) {
      event.preventDefault();
      const to = Math.min(visible.length - 1, Math.max(0, moves[event.key]));
      this.#cursor = visible[to].key;
      this.#reveal(to);
      if (this.#selected !== null) {
        this.#onSelect(this.#cursor);
      }
      this.schedule();
    } else if ((event.key === 'Enter' || event.key === ' ') && at >= 0) {
      event.preventDefault();
      this.#onSelect(this.#cursor);
    }
  }

  #reveal(index) {
    const header = this.#table.tHead.offsetHeight;
    const top = index * this.#rowHeight;
    const view = this.#frame.clientHeight - header;
    if (top < this.#frame.scrollTop) {
      this.#frame.scrollTop = top;
    } else if (top + this.#rowHeight > this.#frame.scrollTop + view) {
      this.#frame.scrollTop = top + this.#rowHeight - view;
    }
  }

  #showSort() {
    const { column, descending } = this.#rows.sort;
    for (const header of this.#headers) {
      if (header.hasAttribute('aria-sort')) {
        const own = header.dataset.column === column;
        const direction = descending ? 'descending' : 'ascending';
        header.setAttribute('aria-sort', own ? direction : 'none');
      }
    }
  }
}

/** Marks rows as changed for a moment; a change in between begins the moment anew. */
function flash(elements) {
  for (const element of elements) {
    element.classList.remove('flash');
  }
  // An animation begins anew only with a layout in between: one, for all of the few rows in view.
  void elements[0]?.offsetWidth;
  for (const element of elements) {
    clearTimeout(element.shown.timer);
    element.classList.add('flash');
    element.shown.timer = setTimeout(() => {
      element.classList.remove('flash');
      delete element.dataset.flash;
      delete element.dataset.statusChanged;
    }, FLASH_MS);
  }
}

function showAges(element, now) {
  const { row } = element.shown;
  const [, , , , age, changed] = element.cells;
  setText(age, duration(now - row.created));
  setText(changed, row.changes === 0 ? '' : `${duration(now - row.changedAt)} ago`);
}

function showConditions(cell, conditions) {
  cell.replaceChildren(...conditions.slice(0, CONDITIONS_SHOWN).map((condition) => {
    const chip = document.createElement('span');
    chip.className = 'chip';
    chip.dataset.tone = condition.tone;
    chip.textContent = condition.type;
    chip.title = [`${condition.type}: ${condition.status}`, condition.reason, condition.message].filter(Boolean).join('\n');
    return chip;
  }));
  if (conditions.length > CONDITIONS_SHOWN) {
    cell.append(`+${conditions.length - CONDITIONS_SHOWN}`);
  }
}

function setText(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

function spacer() {
  const row = document.createElement('tr');
  row.className = 'spacer';
  row.setAttribute('aria-hidden', 'true');
  row.append(document.createElement('td'));
  row.hidden = true;
  return row;
}
