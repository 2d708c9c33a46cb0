/** Notifications of the browser, and the number in the tab's title. */

export const notifications = {
  label: "Notifications",
  about: "Keryx notifies you when a session is waiting for you or is done, while you are in another tab or window",
  blocked: "Your browser blocks notifications from this page. Allow them in the browser's settings for this site.",
  waiting: (title: string): string => `${title} is waiting for you`,
  done: (title: string): string => `${title} is done`,
  failed: (title: string): string => `${title} failed`,
  tabTitle: (count: number, title: string): string => (count > 0 ? `(${count}) ${title}` : title),
};
