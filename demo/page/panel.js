// The panel with one object: its facts, what is withheld of it, its conditions, and its JSON as it came over the wire.

import { duration } from './age.js';
import { lineText, lines, objectText } from './rawjson.js';

// An object larger than this is shown as plain text: colours for each token would cost more than they give.
const LINES_COLOURED = 4000;
const REDRAW_MS = 100;

const byId = (id) => document.getElementById(id);

export class Panel {
  #onClose;
  /** @type {import('./rows.js').Row | null} */
  #row = null;
  #shownText = null;
  #shownLines = null;
  #timer = null;
  #returnTo = null;
  #age = element('dd');

  /** @param {() => void} onClose */
  constructor(onClose) {
    this.#onClose = onClose;
    byId('panel-close').addEventListener('click', () => this.close());
    document.addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && this.#row !== null && !isEditable(event.target)) {
        this.close();
      }
    });
  }

  /** The key of the object shown, or null. */
  get key() {
    return this.#row?.key ?? null;
  }

  open(row) {
    if (this.#row === null) {
      this.#returnTo = document.activeElement;
    }
    const other = row.key !== this.#row?.key;
    this.#row = row;
    if (other) {
      this.#shownText = null;
      this.#shownLines = null;
      byId('panel').scrollTop = 0;
      byId('object-json').scrollTop = 0;
    }
    byId('panel').hidden = false;
    byId('layout').dataset.panel = 'open';
    byId('panel-gone').hidden = true;
    this.#draw();
  }

  close() {
    this.forget();
    this.#onClose();
    this.#returnTo?.focus?.({ preventScroll: true });
  }

  /** Closes without a word, since the whole scope went. */
  forget() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#row = null;
    byId('panel').hidden = true;
    delete byId('layout').dataset.panel;
    byId('object-json').replaceChildren();
    byId('redacted-list').replaceChildren();
    byId('condition-list').replaceChildren();
    byId('panel-facts').replaceChildren();
    byId('panel-title').textContent = '';
  }

  /** The object changed: shows it soon, however often that happens. */
  refresh(row) {
    this.#row = row;
    byId('panel-gone').hidden = true;
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.#draw();
    }, REDRAW_MS);
  }

  /** The object left the scope; what was shown stays. */
  showGone() {
    byId('panel-gone').hidden = false;
  }

  /** Brings the ages up to date. */
  tick() {
    if (this.#row !== null) {
      this.#age.textContent = duration(Date.now() - this.#row.created);
    }
  }

  #draw() {
    const row = this.#row;
    if (row.text === this.#shownText) {
      return;
    }
    this.#shownText = row.text;
    const { object } = JSON.parse(row.text);
    byId('panel-kind').textContent = [text(object.apiVersion), text(object.kind)].filter(Boolean).join(' · ');
    byId('panel-title').textContent = row.name;
    this.#showFacts(object);
    showRedacted(row.redacted);
    showConditions(row.conditions);
    this.#showJson(objectText(row.text) ?? '');
  }

  #showFacts(object) {
    const metadata = object.metadata ?? {};
    const facts = [
      ['Namespace', text(metadata.namespace)],
      ['Status', this.#row.summary.text],
      ['Resource version', text(metadata.resourceVersion)],
      ['UID', text(metadata.uid)],
    ].filter(([, value]) => value !== '');
    this.#age.textContent = duration(Date.now() - this.#row.created);
    byId('panel-facts').replaceChildren(
      ...facts.flatMap(([term, value]) => [element('dt', term), element('dd', value)]),
      element('dt', 'Age'),
      this.#age,
    );
  }

  #showJson(json) {
    const now = lines(json);
    const texts = now.map(lineText);
    const container = byId('object-json');
    if (now.length > LINES_COLOURED) {
      container.textContent = texts.join('\n');
      this.#shownLines = null;
      return;
    }
    const changed = this.#shownLines === null ? new Set() : changedLines(this.#shownLines, texts);
    this.#shownLines = texts;
    const fragment = document.createDocumentFragment();
    now.forEach((line, index) => {
      const row = element('span');
      row.className = changed.has(index) ? 'line changed' : 'line';
      row.append('  '.repeat(Math.min(line.indent, 40)));
      for (const token of line.tokens) {
        const part = element('span', token.text);
        part.className = `token-${token.kind}`;
        row.append(token.kind === 'mark' ? token.text : part);
      }
      fragment.append(row, index + 1 < now.length ? '\n' : '');
    });
    const { scrollTop } = container;
    container.replaceChildren(fragment);
    container.scrollTop = scrollTop;
  }
}

/** Which lines are not among those before; lines that only moved are not news. */
function changedLines(before, after) {
  const left = new Map();
  for (const line of before) {
    left.set(bare(line), (left.get(bare(line)) ?? 0) + 1);
  }
  const changed = new Set();
  after.forEach((line, index) => {
    const count = left.get(bare(line)) ?? 0;
    if (count === 0) {
      changed.add(index);
    } else {
      left.set(bare(line), count - 1);
    }
  });
  return changed;
}

function bare(line) {
  return line.replace(/,$/, '');
}

function showRedacted(redacted) {
  byId('panel-redacted').hidden = redacted.length === 0;
  byId('redacted-list').replaceChildren(...redacted.map(({ path, rev }) => {
    const item = element('li');
    item.className = 'redacted';
    item.dataset.path = path;
    item.dataset.rev = String(rev);
    item.append(element('code', path), element('span', ` — withheld, revision ${rev}`));
    return item;
  }));
}

function showConditions(conditions) {
  byId('panel-conditions').hidden = conditions.length === 0;
  byId('condition-list').replaceChildren(...conditions.map((condition) => {
    const item = element('li');
    const chip = element('span', condition.type);
    chip.className = 'chip';
    chip.dataset.tone = condition.tone;
    const words = [condition.status, condition.reason].filter(Boolean).join(' · ');
    item.append(chip, element('span', ` ${words}`));
    if (condition.message !== '') {
      const message = element('p', condition.message);
      message.className = 'condition-message';
      item.append(message);
    }
    return item;
  }));
}

function element(name, content) {
  const created = document.createElement(name);
  if (content !== undefined) {
    created.textContent = content;
  }
  return created;
}

function text(value) {
  return typeof value === 'string' ? value : '';
}

function isEditable(target) {
  return target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
}
