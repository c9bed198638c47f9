public import Foundation

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
