public import Foundation
internal import StoreCoordination

/// Words for the app's user, ready to show, and keys to translate them by.
public struct Notice: Sendable, Hashable {
  /// A choice that the app may offer.
  public struct Action: Sendable, Hashable {
    /// The key to translate the title by; also what tells the actions apart.
    public let key: String

    /// The words on the button.
    public let title: String
  }

  /// The key to translate title and message by, such as `lazaret.notice.salvaged`.
  public let key: String

  /// The heading of an alert.
  public let title: String

  /// What happened to the user's data, in two or three sentences.
  public let message: String

  /// What the app may offer, the usual choice first.
  public let actions: [Action]

  /// The report of a migration that failed, for support; nil where there is none.
  public let report: URL?

  /// The same words, as the modules below have them.
  init(_ notice: StoreCoordination.Notice) {
    key = notice.key
    title = notice.title
    message = notice.message
    actions = notice.actions.map { Action(key: $0.key, title: $0.title) }
    report = URL(notice.report)
  }
}
