// One scope's connection over the native EventSource: when it opens, when it comes back, and when it never does.

const BACKOFF_FIRST_MS = 1000;
const BACKOFF_MOST_MS = 30_000;
// A stream that was live this long is a success: the next failure starts the backoff from its beginning.
const SETTLED_AFTER_MS = 5000;
// Timers overflow at 2^31 ms and would then fire at once.
const HINT_MOST_MS = 10 * 60 * 1000;

/**
 * @typedef {{ name: 'connecting' } | { name: 'snapshot' } | { name: 'live' } | { name: 'resyncing' }
 *   | { name: 'waiting', until: number } | { name: 'ended' } | { name: 'closed' }} State
 */

/** A delay before attempt number `failures` (from 1): doubling, capped, and spread over its upper half. */
export function backoffMs(failures, random) {
  const whole = Math.min(BACKOFF_MOST_MS, BACKOFF_FIRST_MS * 2 ** Math.min(failures - 1, 10));
  return Math.round(whole * (0.5 + random() / 2));
}

/** The gateway's hint is the least delay; a little is added, so that not all who got it come back in the same moment. */
export function hintedMs(retryAfterMs, random) {
  const least = Math.min(retryAfterMs, HINT_MOST_MS);
  return Math.round(least + Math.min(least / 10, 1000) * random());
}

/** The browser's own facilities, replaceable in tests. */
const BROWSER = Object.freeze({
  open: (address) => new EventSource(address),
  now: () => Date.now(),
  random: () => Math.random(),
  setTimer: (callback, delay) => setTimeout(callback, delay),
  clearTimer: (timer) => clearTimeout(timer),
});

/** Keeps one stream open for a {@link import('./reducer.js').Consumer}. */
export class StreamConnection {
  #address;
  #consumer;
  #listener;
  #environment;
  #source = null;
  #timer = null;
  #failures = 0;
  #liveSince = null;
  /** @type {State} */
  #state = { name: 'closed' };

  /**
   * @param {object} options
   * @param {string} options.address
   * @param {import('./reducer.js').Consumer} options.consumer
   * @param {{ onState(state: State): void, onConnect(): void, onEvent(changes: object[]): void }} options.listener
   * @param {typeof BROWSER} [options.environment]
   */
  constructor({ address, consumer, listener, environment = BROWSER }) {
    this.#address = address;
    this.#consumer = consumer;
    this.#listener = listener;
    this.#environment = environment;
  }

  /** @returns {State} */
  get state() {
    return this.#state;
  }

  /** Opens the stream now, whatever it was doing; also the way back that a person asks for after a terminal error. */
  open() {
    this.#release();
    this.#enter({ name: 'connecting' });
    this.#consumer.connect();
    this.#listener.onConnect();
    const source = this.#environment.open(this.#address);
    this.#source = source;
    source.onmessage = (message) => {
      if (this.#source === source) {
        this.#receive(message.data);
      }
    };
    let opened = false;
    source.onopen = () => {
      opened = true;
    };
    source.onerror = () => {
      if (this.#source === source) {
        this.#lost(opened);
      }
    };
  }

  /** Closes the stream for good. */
  close() {
    this.#release();
    this.#enter({ name: 'closed' });
  }

  #receive(text) {
    const { changes, decision } = this.#consumer.receive(text);
    // The decision comes first: what is shown must never keep a stream open that has to close.
    switch (decision.do) {
      case 'continue':
        this.#follow(changes);
        break;
      case 'end':
        this.#release();
        this.#enter({ name: 'ended' });
        break;
      case 'reopen':
        this.#reopen(decision.afterMs);
        break;
    }
    this.#listener.onEvent(changes);
  }

  #follow(changes) {
    for (const change of changes) {
      if (change.type === 'reset') {
        this.#enter({ name: 'snapshot' });
      } else if (change.type === 'synced') {
        this.#liveSince ??= this.#environment.now();
        this.#enter({ name: 'live' });
      } else if (change.type === 'error') {
        this.#enter({ name: 'resyncing' });
      }
    }
  }

  /**
   * The transport ended without a word. Left alone, an EventSource would come back after a fixed delay, together with
   * everyone else's, or, after an answer it cannot read, never.
   */
  #lost(opened) {
    this.#reopen(null);
    const message = opened
      ? 'The connection to the gateway was lost.'
      : 'The gateway cannot be reached, or did not answer with an event stream.';
    this.#listener.onEvent([{ type: 'fault', message }]);
  }

  #reopen(afterMs) {
    const now = this.#environment.now();
    if (this.#liveSince !== null && now - this.#liveSince >= SETTLED_AFTER_MS) {
      this.#failures = 0;
    }
    this.#release();
    this.#failures += 1;
    const delay = afterMs === null
      ? backoffMs(this.#failures, this.#environment.random)
      : hintedMs(afterMs, this.#environment.random);
    this.#timer = this.#environment.setTimer(() => this.open(), delay);
    this.#enter({ name: 'waiting', until: now + delay });
  }

  #release() {
    if (this.#source !== null) {
      this.#source.close();
      this.#source = null;
    }
    if (this.#timer !== null) {
      this.#environment.clearTimer(this.#timer);
      this.#timer = null;
    }
    this.#liveSince = null;
  }

  #enter(state) {
    this.#state = state;
    this.#listener.onState(state);
  }
}
