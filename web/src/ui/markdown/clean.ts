/** The last gate before HTML is shown: only what text and code need, whoever wrote it. */

import DOMPurify from "dompurify";
import { SAFE_ADDRESS } from "./parser";
import { isPlain } from "./plain_html";

const ALLOWED = {
  ALLOWED_TAGS:
    "a blockquote br code del div em h1 h2 h3 h4 h5 h6 hr img input li ol p pre s span strong sup table tbody td th thead tr ul".split(
      " ",
    ),
  ALLOWED_ATTR: "href rel target class start tabindex dir src alt loading type disabled checked".split(" "),
  ALLOWED_URI_REGEXP: SAFE_ADDRESS,
  // Every other attribute would have to look like such an address too.
  ADD_URI_SAFE_ATTR: "rel target start tabindex dir alt loading type disabled checked".split(" "),
  ALLOW_DATA_ATTR: false,
};

export function clean(html: string): string {
  return isPlain(html) ? html : DOMPurify.sanitize(html, ALLOWED);
}
