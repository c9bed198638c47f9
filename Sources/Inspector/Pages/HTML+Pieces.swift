package import HTTPServer
internal import Platform
package import Salvage

extension HTML {
  package enum Tone: String, Sendable {
    case plain = ""
    case good
    case warn
    case bad
    case accent
  }

  package static func tag(_ words: String, _ tone: Tone = .plain) -> HTML {
    "<span class=\"tag \(tone.rawValue)\">\(words)</span>"
  }

  package static func note(_ tone: Tone = .plain, _ content: HTML) -> HTML {
    "<div class=\"note \(tone.rawValue)\">\(content)</div>"
  }

  static func panel(_ heading: String, _ content: HTML) -> HTML {
    "<section class=\"panel\"><h2>\(heading)</h2>\(content)</section>"
  }

  /// Named facts; unknown ones are omitted.
  package static func facts(_ facts: [(String, HTML?)]) -> HTML {
    let rows = facts.compactMap { name, value in
      value.map { value -> HTML in "<dt>\(name)</dt><dd>\(value)</dd>" }
    }
    return "<dl class=\"facts\">\(rows)</dl>"
  }

  /// A table that scrolls sideways, also by keyboard.
  package static func table(_ caption: String, head: HTML, _ rows: [HTML]) -> HTML {
    """
    <div class="scroll" tabindex="0" role="region" aria-label="\(caption)"><table><caption class="visually-hidden">\
    \(caption)</caption><thead><tr>\(head)</tr></thead><tbody>\(rows)</tbody></table></div>
    """
  }

  /// A number in a table: a dash if unknown, faint if zero.
  package static func number(_ number: Int64?, tone: Tone = .plain) -> HTML {
    guard let number else { return "<td class=\"number soft\">–</td>" }
    guard number != 0 else { return "<td class=\"number soft\">0</td>" }
    return "<td class=\"number \(tone.rawValue)\">\(Words.number(number))</td>"
  }

  /// A bar of recovered, doubtful, set-aside and lost records.
  package static func bar(_ count: RecoveryCount, setAside: Int64 = 0) -> HTML {
    let doubtful = min(max(0, count.doubtful), count.recovered)
    let parts: [(style: HTML, count: Int64)] = [
      ("good", count.recovered - doubtful), ("warn", doubtful), ("aside", max(0, setAside)), ("bad", count.lost),
    ]
    let all = max(1, parts.reduce(0.0) { $0 + Double($1.count) })
    var start = 0
    var shapes = HTML.empty
    for (place, part) in parts.enumerated() where part.count > 0 {
      let others = parts[(place + 1)...].count { $0.count > 0 }
      let most = 1000 - start - 8 * others
      let width = others == 0 ? most : min(max(8, Int(Double(part.count) / all * 1000)), max(8, most))
      guard width > 0 else { continue }
      shapes += "<rect class=\"\(part.style)\" x=\"\(start)\" width=\"\(width)\" height=\"8\"/>"
      start += width
    }
    var words =
      "\(grouped(count.recovered)) recovered, \(grouped(count.doubtful)) of them doubtful, \(count.lostNumber) lost"
    if setAside > 0 { words += ", \(grouped(setAside)) set aside" }
    return """
      <svg class="share" viewBox="0 0 1000 8" preserveAspectRatio="none" role="img" aria-label="\(words)">\
      <rect class="rest" width="1000" height="8"/>\(shapes)</svg>
      """
  }

  /// The bar's parts; zero ones are omitted, except recovered.
  static func barKey(_ count: RecoveryCount, recovered word: String, setAside: Int64 = 0) -> HTML {
    let doubtful = min(max(0, count.doubtful), count.recovered)
    var items: [HTML] = []
    func add(_ style: HTML, _ number: String, _ word: String) {
      items.append(
        """
        <li><span class="swatch part-\(style)" aria-hidden="true"></span>\(word) <b>\(number)</b></li>
        """)
    }
    add("good", grouped(count.recovered - doubtful), word)
    if doubtful > 0 { add("warn", grouped(doubtful), "doubtful") }
    if setAside > 0 { add("aside", grouped(setAside), "set aside") }
    if count.lost > 0 || count.hasUnknown { add("bad", count.lostNumber, "lost") }
    return "<ul class=\"legend\">\(items)</ul>"
  }
}
