// Ages in the spelling of kubectl.

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

/**
 * A duration in one or two units: `8s`, `3m20s`, `5h`, `12d`, `2y30d`. A negative one (clocks differ) is `0s`.
 *
 * @param {number} milliseconds
 */
export function duration(milliseconds) {
  if (!Number.isFinite(milliseconds)) {
    return '';
  }
  const elapsed = Math.max(0, milliseconds);
  if (elapsed < 2 * MINUTE) {
    return `${Math.floor(elapsed / SECOND)}s`;
  }
  if (elapsed < 10 * MINUTE) {
    return two(elapsed, MINUTE, 'm', SECOND, 's');
  }
  if (elapsed < 3 * HOUR) {
    return `${Math.floor(elapsed / MINUTE)}m`;
  }
  if (elapsed < 8 * HOUR) {
    return two(elapsed, HOUR, 'h', MINUTE, 'm');
  }
  if (elapsed < 2 * DAY) {
    return `${Math.floor(elapsed / HOUR)}h`;
  }
  if (elapsed < 8 * DAY) {
    return two(elapsed, DAY, 'd', HOUR, 'h');
  }
  if (elapsed < 2 * YEAR) {
    return `${Math.floor(elapsed / DAY)}d`;
  }
  return two(elapsed, YEAR, 'y', DAY, 'd');
}

function two(elapsed, large, largeUnit, small, smallUnit) {
  const whole = Math.floor(elapsed / large);
  const rest = Math.floor((elapsed - whole * large) / small);
  return rest === 0 ? `${whole}${largeUnit}` : `${whole}${largeUnit}${rest}${smallUnit}`;
}

/** Milliseconds since the epoch of an RFC 3339 timestamp, or NaN. */
export function instant(timestamp) {
  return typeof timestamp === 'string' ? Date.parse(timestamp) : Number.NaN;
}
