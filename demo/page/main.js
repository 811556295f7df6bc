// Wires the page: address → scope → connection → rows → table, panel and status bar.

import { loadConfig } from './config.js';
import { StreamConnection } from './connection.js';
import { Panel } from './panel.js';
import { Picker } from './picker.js';
import { Rate } from './rate.js';
import { Consumer } from './reducer.js';
import { Rows } from './rows.js';
import { describeScope, formatScope, isComplete, scopeOfAddress, streamAddress } from './scope.js';
import { StatusBar } from './status.js';
import { Table } from './table.js';

const byId = (id) => document.getElementById(id);

// A fault of the page itself must not look like a quiet stream.
const faults = (text) => {
  document.documentElement.dataset.faults = String(Number(document.documentElement.dataset.faults ?? 0) + 1);
  status.showError({ code: 'PAGE', message: `The page itself failed: ${text}`, terminal: false });
};

const rows = new Rows();
const rate = new Rate();
const status = new StatusBar(() => connection?.open());
const table = new Table(rows, { onSelect: select, onDraw: refreshNumbers });
const panel = new Panel(() => table.select(null));

addEventListener('error', (event) => faults(event.message));
addEventListener('unhandledrejection', (event) => faults(String(event.reason)));
addEventListener('securitypolicyviolation', (event) => faults(`${event.violatedDirective} was violated`));

/** @type {StreamConnection | null} */
let connection = null;
let consumer = new Consumer();
let connections = 0;
let lastQuery = null;
let everSynced = false;

const config = await loadConfig();
const picker = new Picker(config, (query) => {
  if (query === lastQuery) {
    watch();
  } else {
    location.hash = query;
  }
});

addEventListener('hashchange', watch);
byId('filter').addEventListener('input', (event) => {
  rows.filterBy(event.target.value);
  table.schedule();
});
byId('skip-link').addEventListener('click', (event) => {
  event.preventDefault();
  byId('table').focus();
});
setInterval(tick, 1000);
watch();

/** Begins the scope of the page's address. */
function watch() {
  const scope = scopeOfAddress(location);
  lastQuery = formatScope(scope);
  connection?.close();
  connection = null;
  consumer = new Consumer();
  connections = 0;
  everSynced = false;
  rows.clear();
  rate.clear();
  panel.forget();
  table.select(null);
  table.scrollToTop();
  status.clearError();
  picker.show(scope);
  table.schedule();

  if (!isComplete(scope)) {
    status.showScope(lastQuery === '' ? 'No scope chosen' : 'An incomplete scope');
    status.showState({ name: 'idle' }, 0);
    byId('stream-command').textContent = '';
    showEmpty();
    return;
  }
  const address = streamAddress(config.streamPath, scope);
  status.showScope(describeScope(scope));
  byId('stream-command').textContent = `curl -N ${shellQuoted(new URL(address, location.href).href)}`;
  connection = new StreamConnection({ address, consumer, listener: listenerFor(consumer) });
  connection.open();
}

/** A listener of one consumer: what an abandoned connection still says is not shown. */
function listenerFor(own) {
  const ours = (action) => (argument) => {
    if (own === consumer) {
      action(argument);
    }
  };
  return {
    onState: ours((state) => {
      status.showState(state, own.receivedInCycle);
      showEmpty();
    }),
    onConnect: ours(() => {
      connections += 1;
      status.markConnect();
      table.schedule();
    }),
    onEvent: ours(take),
  };
}

function take(changes) {
  const now = Date.now();
  if (changes.every((change) => change.type !== 'fault')) {
    rate.count(now);
  }
  for (const change of changes) {
    switch (change.type) {
      case 'upsert':
        rows.upsert(change, { now, news: everSynced });
        if (panel.key === change.key) {
          panel.refresh(rows.get(change.key));
        }
        break;
      case 'remove':
        table.remove(change.key);
        if (panel.key === change.key) {
          panel.showGone();
        }
        break;
      case 'error':
        status.showError(change);
        break;
      case 'fault':
        status.showError({ code: 'CONNECTION', message: change.message, terminal: false });
        break;
      case 'synced':
        everSynced = true;
        break;
      case 'reset':
        break;
    }
  }
  table.schedule();
}

function refreshNumbers() {
  const shown = rows.visible.reduce((count, row) => count + Number(!row.leaving), 0);
  status.showCounts({ held: rows.size, shown, connections });
  status.showProgress(consumer.receivedInCycle);
  showEmpty();
}

function select(key) {
  const row = rows.get(key);
  if (row !== undefined) {
    panel.open(row);
    table.select(key);
  }
}

function tick() {
  const now = Date.now();
  table.tick();
  panel.tick();
  status.showProgress(consumer.receivedInCycle);
  status.showRate(rate.perSecond(now), rate.history(now));
}

function showEmpty() {
  const state = connection?.state.name ?? 'idle';
  let text = '';
  if (state === 'idle') {
    text = 'Choose one of the scopes, or fill in another: a version and a resource are what each needs.';
  } else if (rows.size === 0 && state === 'live') {
    text = 'Nothing is in this scope. What is created will appear here.';
  } else if (rows.size === 0 && state === 'ended') {
    text = 'Nothing was received before the stream ended.';
  } else if (rows.size > 0 && rows.visible.length === 0 && byId('filter').value !== '') {
    text = 'No object passes the filter.';
  }
  byId('empty').hidden = text === '';
  if (byId('empty-text').textContent !== text) {
    byId('empty-text').textContent = text;
  }
}

function shellQuoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
