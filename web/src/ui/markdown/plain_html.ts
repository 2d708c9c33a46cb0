/**
 * Tells HTML in which there is nothing to clean: text, and tags without attributes but a class or a
 * direction. Most of a reply is no more than that. Whatever else there is goes to the cleaner, which
 * parses it, looks at each element and writes all of it again.
 */

const TAGS = "blockquote|br|code|del|div|em|h[1-6]|hr|li|ol|p|pre|s|span|strong|sup|table|tbody|td|th|thead|tr|ul";
const OTHER_TAG = new RegExp(`<(?!/?(?:${TAGS})(?: (?:class|dir)="[\\w -]*")*>)`);

export const isPlain = (html: string): boolean => !OTHER_TAG.test(html);
