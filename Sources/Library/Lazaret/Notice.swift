public import Foundation
package import StoreCoordination

/// Words for the app's user, ready to show, and keys to translate them by.
public struct Notice: Sendable, Hashable {
  /// A choice that the app may offer.
  public struct Action: Sendable, Hashable {
    /// The key to translate the title by; also what tells the actions apart.
    public let key: String

    /// The words on the button.
    public let title: String
  }

  /// The numbers behind the words, for an app that tells more.
  public struct Counts: Sendable, Hashable {
    /// Records recovered.
    public var recovered: Int64 = 0

    /// Those of them that are doubtful.
    public var doubtful: Int64 = 0

    /// Records lost.
    public var lost: Int64 = 0

    /// Whether more or fewer may be lost.
    public var isEstimate = false

    /// Whether more may be lost, and nothing tells how many.
    public var hasUnknown = false

    /// Values of recovered records that were set aside, because nothing has a column for them.
    public var valuesSetAside: Int64 = 0

    /// Values of recovered records that the app's version has no place for.
    public var valuesLeftOut: Int64 = 0

    /// References that lead to no record after a repair.
    public var danglingReferences: Int64 = 0

    /// Records that were found whole and are not in the salvaged store.
    public var keptBeside: Int64 = 0

    /// Pairs of many-to-many relationships that are not in the salvaged store.
    public var lostPairs: Int64 = 0

    /// Whether pairs are lost, or may be, and nothing tells exactly how many.
    public var isPairEstimate = false

    /// Records of a sound store that are in quarantine; 0 where they were not counted.
    public var setAside: Int64 = 0

    /// Records that a migration left out, because the app's version has no place for them.
    public var leftOut: Int64 = 0

    /// Whether more than half of the records are known to be recovered.
    public var hasMost = false

    init() {}
  }

  /// The key to translate title and message by, such as `lazaret.notice.salvaged`.
  public let key: String

  /// What was wrong: `damaged`, `incompatible`, `migration`, `repair`, `leftovers`, `set-aside` or `empty`; nil where nothing was.
  public let cause: String?

  /// The numbers behind the words, which hold none.
  public let counts: Counts

  /// The heading of an alert.
  public let title: String

  /// What happened to the user's data, in two or three sentences.
  public let message: String

  /// What the app may offer, the usual choice first.
  public let actions: [Action]

  /// The report of a migration that failed, for support; nil where there is none.
  public let report: URL?

  /// The same words, as the modules below have them.
  ///
  /// - Parameter events: what happened, for the cause and the numbers.
  package init(_ notice: StoreCoordination.Notice, _ events: [OpeningEvent] = []) {
    key = notice.key
    title = notice.title
    message = notice.message
    actions = notice.actions.map { Action(key: $0.key, title: $0.title) }
    report = URL(notice.report)
    cause = events.last { $0.reason != nil }?.reason.map { StoreCoordination.Notice.key(for: $0.code) }
    var counts = Counts()
    if let salvage = events.last(where: { $0.salvage != nil })?.salvage {
      counts.recovered = salvage.recovered
      counts.hasMost = salvage.hasMost
      counts.doubtful = salvage.doubtful
      counts.lost = salvage.lost
      counts.isEstimate = !salvage.lostIsExact || salvage.count.hasUnknown
      counts.hasUnknown = salvage.count.hasUnknown
      counts.valuesSetAside = salvage.count.valuesSetAside
      counts.valuesLeftOut = salvage.count.valuesLeftOut
      counts.leftOut = salvage.count.recordsLeftOut
      counts.keptBeside = salvage.count.setAside
      counts.lostPairs = salvage.count.pairs.missing
      counts.isPairEstimate = !salvage.count.pairs.isLostExact
    }
    counts.setAside = events.last { $0.records != nil }?.records ?? 0
    counts.danglingReferences = Int64(events.lazy.compactMap(\.repair).first?.danglingReferences ?? 0)
    counts.leftOut += events.compactMap(\.migration).flatMap(\.removedRows.values).reduce(0) { $0 + Int64($1) }
    self.counts = counts
  }

  /// The same notice in other words.
  init(_ notice: Notice, title: String, message: String, actions: [Action]) {
    key = notice.key
    cause = notice.cause
    counts = notice.counts
    report = notice.report
    self.title = title
    self.message = message
    self.actions = actions
  }
}

extension Notice {
  /// A language that the catalogue has.
  public enum Language: String, Sendable, Hashable, CaseIterable {
    /// English.
    case english = "en"

    /// German.
    case german = "de"

    /// French.
    case french = "fr"

    /// The first of a user's languages, as `Locale.preferredLanguages` has them, that the catalogue has; nil for none.
    public init?(preferred languages: [String] = Locale.preferredLanguages) {
      for language in languages {
        let code = language.prefix { $0 != "-" && $0 != "_" }.lowercased()
        if let known = Self(rawValue: code) {
          self = known
          return
        }
      }
      return nil
    }
  }

  /// The same notice in another language; in English as it is.
  ///
  /// An app with languages of its own takes the catalogue as a file
  /// (``stringCatalogue``) and translates by its keys.
  public func translated(into language: Language) -> Notice {
    guard language != .english else { return self }
    let words = NoticeWords(language)
    return Notice(
      self, title: words.text("\(key).title") ?? title,
      message: message(in: words) ?? message,
      actions: actions.map { Action(key: $0.key, title: words.text($0.key) ?? $0.title) })
  }

  /// All words in all languages, as a string catalogue that Xcode reads (`.xcstrings`).
  public static var stringCatalogue: String { NoticeWords.catalogue }

  /// The message in the words of a language; nil for a notice that the catalogue has not.
  func message(in words: NoticeWords) -> String? {
    parts?.compactMap { words.text("lazaret.part.\($0)") }.joined(separator: " ")
  }

  /// The keys of the message's sentences; nil for a notice that the catalogue has not.
  private var parts: [String]? {
    let cause = cause.map { ["cause.\($0)"] } ?? []
    switch key.hasPrefix("lazaret.notice.") ? key.dropFirst("lazaret.notice.".count) : "" {
    case "salvaged": return cause + ["all-recovered", "old-kept"]
    case "salvaged-nothing": return cause + ["none-recovered", "start-empty", "old-kept", "support"]
    case "salvaged-unconfirmed": return cause + ["unconfirmed", "old-kept", "support"]
    case "salvaged-with-losses":
      return cause + [counts.hasMost ? "most-recovered" : "part-recovered", "may-lack", "old-kept", "support"]
    case "salvage-later": return cause + ["kept", "later"]
    case "migrated-without": return ["left-out", "old-kept"]
    case "repaired": return ["repaired", "nothing-removed", "old-kept"]
    case "repaired-with-losses": return ["repaired", "may-lack", "old-kept", "support"]
    case "leftovers": return cause + ["kept.leftovers", "support"]
    case "empty": return cause + ["kept.empty", "support"]
    case "damaged", "incompatible", "migration", "repair", "set-aside": return cause + ["kept", "support"]
    case let name where name.hasPrefix("send-report."): return ["send-report", String(name)]
    default: return nil
    }
  }
}
