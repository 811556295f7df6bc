// The rows of the table: what is shown of each object, which of them pass the filter, and in what order.

import { instant } from './age.js';
import { conditions, summarise } from './summary.js';

/**
 * @typedef {object} Row
 * @property {string} key
 * @property {string} uid
 * @property {string} name
 * @property {string} namespace
 * @property {number} created milliseconds since the epoch, NaN where unknown
 * @property {number} changedAt milliseconds since the epoch of the last change seen here
 * @property {number} changes how often it changed while it was held
 * @property {number} version grows with each change of what is shown
 * @property {import('./summary.js').Summary} summary
 * @property {import('./summary.js').Condition[]} conditions
 * @property {string} haystack what the filter looks at, in lower case
 * @property {{ path: string, rev: number }[]} redacted
 * @property {string} text the event that brought it
 * @property {'added' | 'modified' | null} flash the change that is still to be shown
 * @property {boolean} leaving it is gone and only fades
 */

/** Orders by a column; equal ones by namespace and name, so that rows never swap places without a reason. */
const COLUMNS = Object.freeze({
  name: (a, b) => compare(a.name, b.name),
  namespace: (a, b) => compare(a.namespace, b.namespace),
  status: (a, b) => compare(a.summary.text, b.summary.text),
  // An older object has the greater age.
  age: (a, b) => compare(b.created || 0, a.created || 0),
  changed: (a, b) => compare(b.changedAt, a.changedAt),
});

/** All rows of one scope. */
export class Rows {
  /** @type {Map<string, Row>} */
  #rows = new Map();
  #column = 'name';
  #descending = false;
  #needles = [];
  /** @type {Row[]} */
  #visible = [];
  #orderIsOld = false;
  #leaving = 0;
  #withConditions = 0;

  /** How many objects there are, those that only fade aside. */
  get size() {
    return this.#rows.size - this.#leaving;
  }

  /** Whether any object has conditions. */
  get haveConditions() {
    return this.#withConditions > 0;
  }

  get sort() {
    return { column: this.#column, descending: this.#descending };
  }

  get(key) {
    return this.#rows.get(key);
  }

  clear() {
    this.#rows.clear();
    this.#leaving = 0;
    this.#withConditions = 0;
    this.#orderIsOld = true;
  }

  /**
   * Takes in an object's new state.
   *
   * @param {{ key: string, existed: boolean, changed: boolean, object: object, redacted: object[], text: string }} change
   * @param {{ now: number, news: boolean }} context the first snapshot's rows are not news and do not flash
   */
  upsert(change, { now, news }) {
    let row = this.#rows.get(change.key);
    const metadata = change.object.metadata;
    const before = { ...row };
    if (row === undefined) {
      row = { key: change.key, uid: metadata.uid, changes: 0, version: 0, changedAt: now, conditions: [], flash: null, leaving: false };
      this.#rows.set(change.key, row);
      row.flash = news ? 'added' : null;
    } else if (row.leaving) {
      row.leaving = false;
      this.#leaving -= 1;
      row.flash = 'added';
      row.changedAt = now;
    } else if (!change.changed) {
      row.text = change.text;
      row.redacted = change.redacted;
      return;
    } else {
      row.flash = 'modified';
      row.changes += 1;
      row.changedAt = now;
    }

    row.name = string(metadata.name);
    row.namespace = string(metadata.namespace);
    row.created = instant(metadata.creationTimestamp);
    row.summary = summarise(change.object, change.redacted);
    row.conditions = conditions(change.object);
    row.redacted = change.redacted;
    row.text = change.text;
    row.haystack = haystack(row, metadata.labels);
    row.version += 1;

    this.#withConditions += Number(row.conditions.length > 0) - Number((before.conditions ?? []).length > 0);
    this.#orderIsOld ||= before.summary === undefined
      || COLUMNS[this.#column](before, row) !== 0
      || (this.#needles.length > 0 && before.haystack !== row.haystack);
  }

  /** Marks a row as gone; it stays until {@link drop}. */
  leave(key) {
    const row = this.#rows.get(key);
    if (row !== undefined && !row.leaving) {
      row.leaving = true;
      row.version += 1;
      this.#leaving += 1;
    }
  }

  /** Takes a row out. */
  drop(key) {
    const row = this.#rows.get(key);
    if (row === undefined) {
      return;
    }
    this.#rows.delete(key);
    this.#leaving -= Number(row.leaving);
    this.#withConditions -= Number(row.conditions.length > 0);
    this.#orderIsOld = true;
  }

  sortBy(column) {
    this.#descending = column === this.#column && !this.#descending;
    this.#column = column;
    this.#orderIsOld = true;
  }

  /** Shows only rows that contain every word. */
  filterBy(text) {
    this.#needles = text.toLowerCase().split(/\s+/).filter(Boolean);
    this.#orderIsOld = true;
  }

  /** Whether {@link order} would change something. */
  get orderIsOld() {
    return this.#orderIsOld;
  }

  /** The rows to show, filtered and sorted when that was last asked for. */
  get visible() {
    return this.#visible;
  }

  order() {
    const needles = this.#needles;
    const rows = [];
    for (const row of this.#rows.values()) {
      if (needles.every((needle) => row.haystack.includes(needle))) {
        rows.push(row);
      }
    }
    const column = COLUMNS[this.#column];
    const direction = this.#descending ? -1 : 1;
    rows.sort((a, b) => direction * column(a, b) || compare(a.namespace, b.namespace) || compare(a.name, b.name)
      || compare(a.key, b.key));
    this.#visible = rows;
    this.#orderIsOld = false;
  }
}

function haystack(row, labels) {
  const pairs = labels !== null && typeof labels === 'object'
    ? Object.entries(labels).map(([key, value]) => `${key}=${value}`)
    : [];
  return [row.name, row.namespace, row.summary.text, ...pairs].join('\n').toLowerCase();
}

function string(value) {
  return typeof value === 'string' ? value : '';
}

function compare(a, b) {
  if (a === b) {
    return 0;
  }
  return a < b ? -1 : 1;
}
