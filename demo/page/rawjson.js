// JSON as text. `JSON.parse` rewrites numbers (`1.10`, `12345678901234567890`), so what is shown is cut out of the event.

const WHITESPACE = /[ \t\n\r]/;

/**
 * The text of the `object` of an event, or null when it has none.
 *
 * @param {string} event the event's data, which is known to be valid JSON
 * @returns {string | null}
 */
export function objectText(event) {
  let found = null;
  let depth = 0;
  let index = 0;
  let key = null;
  let valueStart = -1;
  const take = (end) => {
    if (key === '"object"' && valueStart >= 0) {
      found = event.slice(valueStart, end).trim();
    }
    key = null;
    valueStart = -1;
  };
  while (index < event.length) {
    const character = event[index];
    if (character === '"') {
      const end = stringEnd(event, index);
      if (depth === 1 && valueStart < 0 && key === null) {
        key = event.slice(index, end);
      }
      index = end;
      continue;
    }
    if (character === ':' && depth === 1 && valueStart < 0) {
      valueStart = index + 1;
    } else if (character === ',' && depth === 1) {
      take(index);
    } else if (character === '{' || character === '[') {
      depth += 1;
    } else if (character === '}' || character === ']') {
      depth -= 1;
      if (depth === 0) {
        take(index);
      }
    }
    index += 1;
  }
  return found;
}

/**
 * Indents valid JSON without changing a token, one entry a line. Works at any depth.
 *
 * @param {string} text
 * @returns {{ indent: number, tokens: { kind: 'key' | 'string' | 'number' | 'word' | 'mark', text: string }[] }[]}
 */
export function lines(text) {
  const out = [];
  let line = { indent: 0, tokens: [] };
  let depth = 0;
  const breakLine = () => {
    out.push(line);
    line = { indent: depth, tokens: [] };
  };
  let index = 0;
  while (index < text.length) {
    const character = text[index];
    if (WHITESPACE.test(character)) {
      index += 1;
    } else if (character === '"') {
      const end = stringEnd(text, index);
      const colon = skipWhitespace(text, end);
      line.tokens.push({ kind: text[colon] === ':' ? 'key' : 'string', text: text.slice(index, end) });
      index = end;
    } else if (character === '{' || character === '[') {
      const closing = skipWhitespace(text, index + 1);
      if (text[closing] === '}' || text[closing] === ']') {
        line.tokens.push({ kind: 'mark', text: character + text[closing] });
        index = closing + 1;
      } else {
        line.tokens.push({ kind: 'mark', text: character });
        depth += 1;
        breakLine();
        index += 1;
      }
    } else if (character === '}' || character === ']') {
      depth -= 1;
      breakLine();
      line.tokens.push({ kind: 'mark', text: character });
      index += 1;
    } else if (character === ',') {
      line.tokens.push({ kind: 'mark', text: ',' });
      breakLine();
      index += 1;
    } else if (character === ':') {
      line.tokens.push({ kind: 'mark', text: ': ' });
      index += 1;
    } else {
      const end = scalarEnd(text, index);
      const scalar = text.slice(index, end);
      line.tokens.push({ kind: /^[-0-9]/.test(scalar) ? 'number' : 'word', text: scalar });
      index = end;
    }
  }
  out.push(line);
  return out;
}

/**
 * The text of one line of {@link lines}. Beyond 40 levels the indentation stays, or a deep object would be mostly blanks.
 *
 * @param {{ indent: number, tokens: { text: string }[] }} line
 */
export function lineText(line) {
  return '  '.repeat(Math.min(line.indent, 40)) + line.tokens.map((token) => token.text).join('');
}

function stringEnd(text, start) {
  let index = start + 1;
  while (index < text.length && text[index] !== '"') {
    index += text[index] === '\\' ? 2 : 1;
  }
  return index + 1;
}

function scalarEnd(text, start) {
  let index = start;
  while (index < text.length && !/[ \t\n\r,\]}:]/.test(text[index])) {
    index += 1;
  }
  // A character that starts no token would otherwise never be passed.
  return Math.max(index, start + 1);
}

function skipWhitespace(text, start) {
  let index = start;
  while (index < text.length && WHITESPACE.test(text[index])) {
    index += 1;
  }
  return index;
}
