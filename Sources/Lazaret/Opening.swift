/// A store that is open, and how it came to that.
public struct Opening: Sendable {
  /// The open store.
  public let store: PersistentStore

  /// What was found when the opening began.
  public let examination: Examination

  /// What was done, in order; empty for a store that was simply opened.
  public let events: [OpeningEvent]

  /// What to tell the app's user; nil where there is nothing to tell.
  public let notice: Notice?
}

/// One thing that was done to get a store open.
public struct OpeningEvent: Sendable, Hashable, Codable {
  /// What kind of thing.
  public enum Kind: String, Sendable, Codable {
    /// An interrupted quarantine of an earlier run was finished or taken back.
    case recovery

    /// The store was moved into quarantine.
    case quarantine

    /// An empty store was created.
    case create
  }

  public var kind: Kind

  /// When, in RFC 3339.
  public var date: String

  /// The file that it produced: the quarantined store, or the new one.
  public var path: PathText

  /// What happened, in one plain sentence.
  public var words: String

  /// For a quarantine: what the store is called there.
  public var id: String?

  /// For a quarantine: why.
  public var reason: Receipt.Reason?

  /// For a quarantine: the receipt.
  public var receipt: PathText?

  init(
    _ kind: Kind, at date: Timestamp, path: FilePath, words: String, id: String? = nil,
    reason: Receipt.Reason? = nil, receipt: FilePath? = nil
  ) {
    self.kind = kind
    self.date = date.rfc3339
    self.path = PathText(path)
    self.words = words
    self.id = id
    self.reason = reason
    self.receipt = receipt.map { PathText($0) }
  }
}

/// Words for the app's user, ready to show, and keys to translate them by.
public struct Notice: Sendable, Hashable, Codable {
  /// A choice that the app may offer.
  public struct Action: Sendable, Hashable, Codable {
    /// The key to translate the title by; also what tells the actions apart.
    public var key: String
    public var title: String
  }

  /// The key to translate title and message by.
  public var key: String
  public var title: String
  public var message: String
  public var actions: [Action]

  /// The store was set aside, and an empty one is in its place.
  static func replaced(isDamaged: Bool) -> Notice {
    Notice(
      key: isDamaged ? "lazaret.notice.damaged" : "lazaret.notice.incompatible", title: "Your data was set aside",
      message: isDamaged
        ? "The file with your data is damaged and could not be opened. It was not deleted: a complete copy was set aside, and you start with an empty one. Our support can look at what was set aside."
        : "The file with your data does not fit this version of the app. It was not deleted: it was set aside complete, and you start with an empty one. Our support can look at what was set aside.",
      actions: [
        Action(key: "lazaret.action.continue", title: "Continue"),
        Action(key: "lazaret.action.contact-support", title: "Contact Support"),
      ])
  }
}
