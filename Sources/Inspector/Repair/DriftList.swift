import HTTPServer
import PersistentStore
import Platform

/// A store's deviations from its model.
struct DriftList {
  let drift: StoreDrift

  /// The most items on a page; the JSON has all.
  static let maximumShown = 100

  /// The most characters per item, since names can be very long.
  static let maximumLength = 300

  var html: HTML {
    var html = HTML.empty
    if !drift.isEmpty {
      html += "<p>\(Self.counts(drift.differences.map(\.code)))</p>\(Self.list(drift.differences.map(\.words)))"
    }
    if !drift.remarks.isEmpty {
      html += "<h3>Told, and changed by no repair</h3>\(Self.list(drift.remarks.map(\.words)))"
    }
    return html
  }

  static func list(_ sentences: [String]) -> HTML {
    let items = sentences.prefix(maximumShown).map { words -> HTML in
      let isLong = words.count > maximumLength
      return "<li>\(sentence(isLong ? words.prefix(maximumLength - 1) + "…" : words))</li>"
    }
    let rest = sentences.count - maximumShown
    let more: HTML =
      rest > 0 ? "<p class=\"soft\">And \(Words.number(rest)) more; this page as JSON has all of them.</p>" : .empty
    return "<ul class=\"plain-words\">\(items)</ul>\(more)"
  }

  /// Counts the differences by kind, in order of first occurrence.
  private static func counts(_ codes: [String]) -> HTML {
    var order: [String] = []
    var counts: [String: Int] = [:]
    for code in codes {
      if counts[code] == nil { order.append(code) }
      counts[code, default: 0] += 1
    }
    let tags = order.map { code -> HTML in
      let nouns = nouns(code)
      return HTML.tag(Words.counted(counts[code] ?? 0, nouns.one, nouns.many), .warn) + " "
    }
    return tags.reduce(.empty, +)
  }

  private static func nouns(_ code: String) -> (one: String, many: String) {
    switch code {
    case "missing-table": ("missing table", "missing tables")
    case "missing-join-table": ("missing join table", "missing join tables")
    case "missing-column": ("missing column", "missing columns")
    case "missing-index": ("missing index", "missing indexes")
    case "missing-unique-index": ("missing unique index", "missing unique indexes")
    case "missing-spatial-index": ("missing R-tree index", "missing R-tree indexes")
    case "missing-trigger": ("missing trigger", "missing triggers")
    case "missing-key-row": ("missing row of Z_PRIMARYKEY", "missing rows of Z_PRIMARYKEY")
    case "wrong-key-row": ("wrong row of Z_PRIMARYKEY", "wrong rows of Z_PRIMARYKEY")
    case "other-entity-number": ("other entity number", "other entity numbers")
    case "low-key-maximum": ("highest key that is too low", "highest keys that are too low")
    case "other-model-cached": ("cached model of another version", "cached models of another version")
    default: (code, code)
    }
  }
}
