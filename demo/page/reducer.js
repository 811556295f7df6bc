// The consumer of the wire, without a clock, a socket or a document: text of events in, changes and a decision out.

import { objectText } from './rawjson.js';

/**
 * What to do after an event.
 *
 * @typedef {{ do: 'continue' } | { do: 'end' } | { do: 'reopen', afterMs: number | null }} Decision
 *   `end` closes for good; `reopen` closes and comes back after `afterMs`, or after a backoff of one's own when it is null.
 */

/**
 * What an event did to what is held.
 *
 * @typedef {{ type: 'reset', scope: object, projection: string }
 *   | { type: 'upsert', key: string, existed: boolean, changed: boolean, object: object, redacted: Redaction[], text: string }
 *   | { type: 'remove', key: string, reason: 'deleted' | 'pruned' }
 *   | { type: 'synced' }
 *   | { type: 'error', code: string, message: string, terminal: boolean, retryAfterMs: number | null }
 *   | { type: 'fault', message: string }} Change
 */

/** @typedef {{ path: string, rev: number }} Redaction */

const CONTINUE = Object.freeze({ do: 'continue' });

/** Holds the objects of one scope across all connections that are made for it. */
export class Consumer {
  /** @type {Map<string, { cycle: number, connection: number, text: string, redacted: Redaction[] }>} */
  #held = new Map();
  #connection = 0;
  #cycle = 0;
  #nextSeq = 1;
  /** @type {'none' | 'snapshot' | 'live' | 'over'} */
  #phase = 'over';
  #target = '';
  #received = 0;

  /** Begins a connection: `seq` starts at 1 again; what is held stays until the next `synced`. */
  connect() {
    this.#connection += 1;
    this.#nextSeq = 1;
    this.#phase = 'none';
  }

  /** Where the connection is: before its first `reset`, in a snapshot, live, or over. */
  get phase() {
    return this.#phase;
  }

  /** How many objects are held. */
  get size() {
    return this.#held.size;
  }

  /** How many objects the current cycle has sent. */
  get receivedInCycle() {
    return this.#received;
  }

  /** The keys of what is held. */
  keys() {
    return this.#held.keys();
  }

  /**
   * Takes in the data of one event.
   *
   * @param {string} text
   * @returns {{ changes: Change[], decision: Decision }}
   */
  receive(text) {
    if (this.#phase === 'over') {
      return { changes: [], decision: CONTINUE };
    }
    let event;
    try {
      event = JSON.parse(text);
    } catch {
      return this.#fault('The stream carried an event that is not JSON.');
    }
    if (event === null || typeof event !== 'object') {
      return this.#fault('The stream carried an event that is not a JSON object.');
    }
    if (event.seq !== this.#nextSeq) {
      return this.#fault(`Event ${this.#nextSeq} was expected and ${printable(event.seq)} came: something in between is lost.`);
    }
    this.#nextSeq += 1;

    switch (event.type) {
      case 'reset':
        return this.#reset(event);
      case 'added':
      case 'modified':
        return this.#upsert(event, text);
      case 'deleted':
        return this.#deleted(event);
      case 'synced':
        return this.#synced();
      case 'error':
        return this.#error(event);
      default:
        // Later versions may add types; a consumer ignores what it does not know.
        return { changes: [], decision: CONTINUE };
    }
  }

  #reset(event) {
    this.#target = typeof event.target === 'string' ? event.target : '';
    // What carries an older cycle's number is unseen; nothing is pruned before `synced`.
    this.#cycle += 1;
    this.#received = 0;
    this.#phase = 'snapshot';
    return { changes: [{ type: 'reset', scope: event.scope, projection: event.projection }], decision: CONTINUE };
  }

  #upsert(event, text) {
    const uid = event.object?.metadata?.uid;
    if (this.#phase === 'none') {
      return this.#fault('The stream carried an object before its first reset.');
    }
    if (typeof uid !== 'string' || uid === '') {
      return this.#fault('The stream carried an object without a uid.');
    }
    const key = this.#key(uid);
    const redacted = redactions(event.redacted);
    const before = this.#held.get(key);
    const after = { cycle: this.#cycle, connection: this.#connection, text, redacted };
    this.#held.set(key, after);
    if (before?.cycle !== this.#cycle) {
      this.#received += 1;
    }
    return {
      changes: [{
        type: 'upsert',
        key,
        existed: before !== undefined,
        changed: before === undefined || differs(before, after),
        object: event.object,
        redacted,
        text,
      }],
      decision: CONTINUE,
    };
  }

  #deleted(event) {
    const uid = event.identity?.uid;
    if (this.#phase === 'none') {
      return this.#fault('The stream carried a deletion before its first reset.');
    }
    if (typeof uid !== 'string' || uid === '') {
      return this.#fault('The stream carried a deletion without a uid.');
    }
    const key = this.#key(uid);
    const changes = this.#held.delete(key) ? [{ type: 'remove', key, reason: 'deleted' }] : [];
    return { changes, decision: CONTINUE };
  }

  #synced() {
    if (this.#phase === 'none') {
      return this.#fault('The stream was synced before its first reset.');
    }
    this.#phase = 'live';
    const changes = [];
    for (const [key, entry] of this.#held) {
      if (entry.cycle !== this.#cycle) {
        this.#held.delete(key);
        changes.push({ type: 'remove', key, reason: 'pruned' });
      }
    }
    changes.push({ type: 'synced' });
    return { changes, decision: CONTINUE };
  }

  #error(event) {
    const terminal = event.terminal === true;
    const code = typeof event.code === 'string' ? event.code : 'INTERNAL';
    const retryAfterMs = Number.isFinite(event.retryAfterMs) && event.retryAfterMs >= 0 ? event.retryAfterMs : null;
    const change = { type: 'error', code, message: printable(event.message ?? ''), terminal, retryAfterMs };
    if (terminal) {
      this.#phase = 'over';
      return { changes: [change], decision: { do: 'end' } };
    }
    if (code === 'RESYNC_REQUIRED') {
      // A new cycle follows on this connection. An event in between would belong to no cycle.
      this.#phase = 'none';
      return { changes: [change], decision: CONTINUE };
    }
    this.#phase = 'over';
    return { changes: [change], decision: { do: 'reopen', afterMs: retryAfterMs } };
  }

  /** Continuity is lost, so a new connection has to bring a new cycle. */
  #fault(message) {
    this.#phase = 'over';
    return { changes: [{ type: 'fault', message }], decision: { do: 'reopen', afterMs: null } };
  }

  #key(uid) {
    return `${this.#target}\u0000${uid}`;
  }
}

function redactions(value) {
  if (!Array.isArray(value)) {
    return [];
  }
  return value.filter((entry) => typeof entry?.path === 'string');
}

/** Revisions count per connection, so they say nothing about a state that another connection brought. */
function differs(before, after) {
  if (objectText(before.text) !== objectText(after.text)) {
    return true;
  }
  return before.connection === after.connection
    && JSON.stringify(before.redacted) !== JSON.stringify(after.redacted);
}

function printable(value) {
  return typeof value === 'string' ? value : JSON.stringify(value) ?? 'nothing';
}
