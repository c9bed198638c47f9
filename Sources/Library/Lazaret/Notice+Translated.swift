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
  /// What the words count is in ``counts``. An app with languages of its own takes the catalogue as a file
  /// (``stringCatalogue``) and translates by its keys.
  public func translated(into language: Language) -> Notice {
    guard language != .english else { return self }
    let words = NoticeWords(language)
    return Notice(
      self, title: words.text("\(key).title") ?? title,
      message: parts.map { parts in parts.compactMap { words.text($0.key, $0.count) }.joined(separator: " ") }
        ?? message,
      actions: actions.map { Action(key: $0.key, title: words.text($0.key) ?? $0.title) })
  }

  /// All words in all languages, as a string catalogue that Xcode reads (`.xcstrings`).
  public static var stringCatalogue: String { NoticeWords.catalogue }

  /// The sentences of the message, each by its key with the number that it holds; nil for a notice that the catalogue has not.
  private var parts: [(key: String, count: Int64?)]? {
    func part(_ name: String, _ count: Int64? = nil) -> (key: String, count: Int64?) { ("lazaret.part.\(name)", count) }
    let cause = cause.map { [part("cause.\($0)")] } ?? []
    // The numbers of what is lost, and of what of the recovered records is not in the store.
    var losses: [(key: String, count: Int64?)] = []
    if counts.lost > 0 { losses.append(part(counts.isEstimate ? "about-lost" : "lost", counts.lost)) }
    if counts.hasUnknown { losses.append(part("unknown-lost")) }
    if counts.keptBeside > 0 { losses.append(part("kept-beside", counts.keptBeside)) }
    if counts.lostPairs > 0 {
      losses.append(part(counts.isPairEstimate ? "about-lost-pairs" : "lost-pairs", counts.lostPairs))
    } else if counts.isPairEstimate {
      losses.append(part("unknown-lost-pairs"))
    }
    if counts.valuesSetAside > 0 { losses.append(part("values-set-aside", counts.valuesSetAside)) }
    if counts.leftOut > 0 { losses.append(part("records-left-out", counts.leftOut)) }
    if counts.valuesLeftOut > 0 { losses.append(part("values-left-out", counts.valuesLeftOut)) }
    let held = counts.setAside > 0 ? [part("held", counts.setAside)] : []
    switch key {
    case "lazaret.notice.salvaged": return cause + [part("all-recovered"), part("old-kept")]
    case "lazaret.notice.salvaged-nothing":
      return cause + [part("none-recovered")] + losses + [part("start-empty"), part("old-kept"), part("support")]
    case "lazaret.notice.salvaged-unconfirmed":
      return cause + [part("recovered", counts.recovered), part("unconfirmed"), part("old-kept"), part("support")]
    case "lazaret.notice.salvaged-with-losses":
      var numbers = [part("recovered", counts.recovered)]
      if counts.doubtful > 0 { numbers.append(part("doubtful", counts.doubtful)) }
      if losses.isEmpty, counts.doubtful == 0 { losses.append(part("details")) }
      return cause + numbers + losses + [part("old-kept"), part("support")]
    case "lazaret.notice.salvage-later": return cause + [part("kept")] + held + [part("later")]
    case "lazaret.notice.migrated-without": return [part("left-out", counts.leftOut), part("old-kept")]
    case "lazaret.notice.repaired": return [part("repaired"), part("old-kept")]
    case "lazaret.notice.repaired-with-losses":
      let dangling = counts.danglingReferences
      return [part("repaired-with-losses")] + (dangling > 0 ? [part("dangling", dangling)] : [])
        + [part("old-kept"), part("support")]
    case "lazaret.notice.leftovers": return cause + [part("kept.leftovers")] + held + [part("support")]
    case "lazaret.notice.empty": return cause + [part("kept.empty"), part("support")]
    case "lazaret.notice.damaged", "lazaret.notice.incompatible", "lazaret.notice.migration", "lazaret.notice.repair",
      "lazaret.notice.set-aside":
      return cause + [part("kept")] + held + [part("support")]
    case let key where key.hasPrefix("lazaret.notice.send-report."):
      return [part("send-report"), part(String(key.dropFirst("lazaret.notice.".count)))]
    default: return nil
    }
  }
}
