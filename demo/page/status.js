// The bar with the connection's state and numbers, and the last error in words.

const STATE_WORDS = Object.freeze({
  idle: 'Idle',
  connecting: 'Connecting…',
  snapshot: 'Snapshot',
  live: 'Live',
  resyncing: 'Resyncing…',
  waiting: 'Waiting to retry',
  ended: 'Ended',
  closed: 'Closed',
});

const ERROR_WORDS = Object.freeze({
  FORBIDDEN: 'Not allowed',
  UNAUTHENTICATED: 'Not signed in, or the credential was rejected',
  SCOPE_INVALID: 'This scope cannot be watched',
  UPSTREAM_UNAVAILABLE: 'The API server cannot be reached right now',
  RESYNC_REQUIRED: 'Continuity was lost',
  SLOW_CONSUMER: 'This page was too slow to follow',
  INTERNAL: 'Something went wrong in the gateway',
  CONNECTION: 'The connection broke off',
});

const byId = (id) => document.getElementById(id);

export class StatusBar {
  #state = { name: 'idle' };
  #error = null;

  /** @param {() => void} onReconnect */
  constructor(onReconnect) {
    byId('reconnect').addEventListener('click', onReconnect);
  }

  showScope(description) {
    byId('scope-line').textContent = description;
    document.title = `${description} · krm-stream`;
  }

  /**
   * @param {{ name: string, until?: number }} state
   * @param {number} received objects that the snapshot has brought so far
   */
  showState(state, received) {
    const entered = state.name !== this.#state.name;
    this.#state = state;
    const element = byId('state');
    element.dataset.state = state.name;
    this.showProgress(received);
    byId('reconnect').hidden = state.name !== 'ended' && state.name !== 'waiting';
    byId('reconnect').textContent = state.name === 'waiting' ? 'Try now' : 'Connect again';
    byId('objects-frame').dataset.stale = String(state.name !== 'live' && state.name !== 'snapshot');
    if (entered) {
      byId('announcer').textContent = STATE_WORDS[state.name];
      this.#showNext();
    }
  }

  /** Brings the part of the state that counts up or down up to date. */
  showProgress(received) {
    let text = STATE_WORDS[this.#state.name];
    if (this.#state.name === 'snapshot') {
      text = `Snapshot, ${received.toLocaleString('en')} ${received === 1 ? 'object' : 'objects'}`;
    } else if (this.#state.name === 'waiting') {
      text = `Retry in ${Math.max(0, Math.ceil((this.#state.until - Date.now()) / 1000))} s`;
    }
    if (byId('state-text').textContent !== text) {
      byId('state-text').textContent = text;
    }
  }

  /** A connection is being opened, in the clock of the page. */
  markConnect() {
    byId('connections').dataset.openedAt = String(performance.now());
  }

  showCounts({ held, shown, connections }) {
    set('count', 'count', held, held.toLocaleString('en'));
    byId('count').dataset.shown = String(shown);
    byId('shown').textContent = shown === held ? '' : `${shown.toLocaleString('en')} of ${held.toLocaleString('en')} shown`;
    set('connections', 'count', connections, String(connections));
  }

  showRate(perSecond, history) {
    const rounded = perSecond >= 10 ? Math.round(perSecond) : Math.round(perSecond * 10) / 10;
    set('rate', 'rate', rounded, rounded.toLocaleString('en'));
    // By square root: beside a snapshot's thousands the live changes are still to be seen.
    const most = Math.sqrt(Math.max(1, ...history));
    const points = history.map((count, index) => `${index},${(19 - (18 * Math.sqrt(count)) / most).toFixed(1)}`);
    byId('sparkline').firstElementChild.setAttribute('points', points.join(' '));
  }

  /** @param {{ code: string, message: string, terminal: boolean, retryAfterMs?: number | null }} error */
  showError(error) {
    this.#error = error;
    const element = byId('last-error');
    element.dataset.code = error.code;
    element.dataset.terminal = String(error.terminal);
    element.dataset.past = 'false';
    element.dataset.at = String(performance.now());
    element.dataset.retryAfterMs = String(error.retryAfterMs ?? '');
    byId('error-title').textContent = Object.hasOwn(ERROR_WORDS, error.code) ? ERROR_WORDS[error.code] : 'Error';
    byId('error-code').textContent = error.code === 'CONNECTION' ? '' : error.code;
    byId('error-time').textContent = new Date().toLocaleTimeString();
    byId('error-message').textContent = error.message;
    element.hidden = false;
    this.#showNext();
  }

  clearError() {
    this.#error = null;
    byId('last-error').hidden = true;
  }

  #showNext() {
    if (this.#error === null) {
      return;
    }
    const words = {
      ended: 'The stream has ended and is not opened again by itself.',
      waiting: 'The page comes back by itself.',
      resyncing: 'A new snapshot follows on this connection.',
      live: 'The stream has recovered since.',
    };
    byId('last-error').dataset.past = String(this.#state.name === 'live');
    byId('error-next').textContent = words[this.#state.name] ?? '';
  }
}

function set(id, name, value, text) {
  const element = byId(id);
  element.dataset[name] = String(value);
  if (element.textContent !== text) {
    element.textContent = text;
  }
}
