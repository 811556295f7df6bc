import assert from 'node:assert/strict';
import { test } from 'node:test';

import { backoffMs, hintedMs, StreamConnection } from '../connection.js';
import { Consumer } from '../reducer.js';

/** A browser under the test's control: time stands still until it is told to go on. */
class Browser {
  sources = [];
  timers = new Map();
  clock = 0;

  open = () => {
    const source = { closed: false, close() { this.closed = true; } };
    this.sources.push(source);
    return source;
  };

  now = () => this.clock;

  random = () => 0;

  setTimer = (callback, delay) => {
    const timer = Symbol('timer');
    this.timers.set(timer, { callback, at: this.clock + delay });
    return timer;
  };

  clearTimer = (timer) => this.timers.delete(timer);

  advance(milliseconds) {
    this.clock += milliseconds;
    for (const [timer, { callback, at }] of this.timers) {
      if (at <= this.clock) {
        this.timers.delete(timer);
        callback();
      }
    }
  }

  get last() {
    return this.sources.at(-1);
  }

  give(...events) {
    events.forEach((event, index) => this.last.onmessage({ data: JSON.stringify({ seq: index + 1, ...event }) }));
  }
}

function connection() {
  const browser = new Browser();
  const seen = { states: [], faults: [] };
  const stream = new StreamConnection({
    address: '/stream',
    consumer: new Consumer(),
    listener: {
      onState: ({ name }) => seen.states.push(name),
      onConnect: () => {},
      onEvent: (changes) => seen.faults.push(...changes.filter(({ type }) => type === 'fault')),
    },
    environment: browser,
  });
  stream.open();
  return { browser, seen, stream };
}

const RESET = { type: 'reset', scope: {}, projection: 'krm-full/v1' };
const SYNCED = { type: 'synced' };
const error = (code, terminal, retryAfterMs) => ({ type: 'error', code, message: 'm', terminal, retryAfterMs });

test('a snapshot becomes live, and a resync is seen as such', () => {
  const { browser, seen } = connection();
  browser.give(RESET, SYNCED, error('RESYNC_REQUIRED', false), RESET, SYNCED);
  assert.deepEqual(seen.states, ['connecting', 'snapshot', 'live', 'resyncing', 'snapshot', 'live']);
  assert.equal(browser.sources.length, 1);
});

test('a terminal error closes, and nothing brings the stream back but a person', () => {
  const { browser, seen, stream } = connection();
  browser.give(error('FORBIDDEN', true));
  assert.equal(browser.last.closed, true);
  browser.last.onerror();
  browser.advance(24 * 3600 * 1000);
  assert.equal(browser.sources.length, 1);
  assert.equal(seen.states.at(-1), 'ended');
  stream.open();
  assert.equal(browser.sources.length, 2);
});

test('a non-terminal error closes at once and comes back after the hint, not before', () => {
  const { browser, stream } = connection();
  browser.give(error('UPSTREAM_UNAVAILABLE', false, 7000));
  assert.equal(browser.last.closed, true);
  assert.deepEqual(stream.state, { name: 'waiting', until: 7000 });
  browser.advance(6999);
  assert.equal(browser.sources.length, 1);
  browser.advance(1);
  assert.equal(browser.sources.length, 2);
});

test('without a hint, and after a bare transport error, the delays grow to 30 s', () => {
  const { browser, stream } = connection();
  const delays = [];
  for (let attempt = 0; attempt < 8; attempt += 1) {
    if (attempt % 2 === 0) {
      browser.last.onerror();
    } else {
      browser.give(error('UPSTREAM_UNAVAILABLE', false));
    }
    delays.push(stream.state.until - browser.clock);
    browser.advance(delays.at(-1));
  }
  assert.deepEqual(delays, [500, 1000, 2000, 4000, 8000, 15_000, 15_000, 15_000]);
  assert.equal(browser.sources.slice(0, -1).every(({ closed }) => closed), true);
});

test('a stream that was live for a while starts the backoff anew, one that breaks at once does not', () => {
  const { browser, stream } = connection();
  const lose = (liveFor) => {
    browser.give(RESET, SYNCED);
    browser.advance(liveFor);
    browser.last.onerror();
    const delay = stream.state.until - browser.clock;
    browser.advance(delay);
    return delay;
  };
  assert.deepEqual([lose(0), lose(4999), lose(5000), lose(0)], [500, 1000, 500, 1000]);
});

test('a transport error says whether the stream had been open', () => {
  const { browser, seen } = connection();
  browser.last.onerror();
  browser.advance(60_000);
  browser.last.onopen();
  browser.last.onerror();
  assert.match(seen.faults[0].message, /cannot be reached/);
  assert.match(seen.faults[1].message, /was lost/);
});

test('an event or an error of a source that was left behind changes nothing', () => {
  const { browser, seen, stream } = connection();
  const old = browser.last;
  stream.open();
  old.onmessage({ data: JSON.stringify({ seq: 1, ...RESET }) });
  old.onerror();
  assert.deepEqual(seen.states, ['connecting', 'connecting']);
});

test('delays keep their bounds for any hint and any luck', () => {
  for (const luck of [() => 0, () => 0.999999]) {
    assert.ok(hintedMs(2000, luck) >= 2000 && hintedMs(2000, luck) <= 2200);
    assert.ok(hintedMs(1e12, luck) <= 601_000);
    assert.ok(backoffMs(1, luck) >= 500 && backoffMs(5000, luck) <= 30_000);
  }
});
