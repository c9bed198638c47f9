package import HTTPServer
package import StoreCoordination

extension HTML {
  /// How a tag is coloured.
  package enum Tone: String, Sendable {
    case plain = ""
    case good
    case warn
    case bad
    case accent
  }

  /// A small mark with a word in it.
  package static func tag(_ words: String, _ tone: Tone = .plain) -> HTML {
    "<span class=\"tag \(tone.rawValue)\">\(words)</span>"
  }

  /// A box with something to say.
  package static func note(_ tone: Tone = .plain, _ content: HTML) -> HTML {
    "<div class=\"note \(tone.rawValue)\">\(content)</div>"
  }

  /// A panel with a heading.
  package static func panel(_ heading: String, _ content: HTML) -> HTML {
    "<section class=\"panel\"><h2>\(heading)</h2>\(content)</section>"
  }

  /// Facts, each with its name; those that are not known are left out.
  package static func facts(_ facts: [(String, HTML?)]) -> HTML {
    let rows = facts.compactMap { name, value in
      value.map { value -> HTML in "<dt>\(name)</dt><dd>\(value)</dd>" }
    }
    return "<dl class=\"facts\">\(rows)</dl>"
  }

  /// A table that scrolls sideways where it is too wide, and that the keyboard reaches.
  package static func table(_ caption: String, head: HTML, _ rows: [HTML]) -> HTML {
    """
    <div class="scroll" tabindex="0" role="region" aria-label="\(caption)"><table><caption class="visually-hidden">\
    \(caption)</caption><thead><tr>\(head)</tr></thead><tbody>\(rows)</tbody></table></div>
    """
  }

  /// A number in a table; a dash where it is not known, a faint one where it is zero.
  package static func number(_ number: Int64?, tone: Tone = .plain) -> HTML {
    guard let number else { return "<td class=\"number soft\">–</td>" }
    guard number != 0 else { return "<td class=\"number soft\">0</td>" }
    return "<td class=\"number \(tone.rawValue)\">\(Words.number(number))</td>"
  }

  /// A bar with what was recovered, what is doubtful and what was lost.
  package static func bar(_ count: RecoveryCount) -> HTML {
    let all = max(1, Double(count.total))
    let doubtful = min(count.doubtful, count.recovered)
    let certain = Double(count.recovered - doubtful) / all * 1000
    let unsure = Double(doubtful) / all * 1000
    let words =
      "\(grouped(count.recovered)) recovered, \(grouped(count.doubtful)) of them doubtful, \(count.lostNumber) lost"
    return """
      <svg class="share" viewBox="0 0 1000 8" preserveAspectRatio="none" role="img" aria-label="\(words)">\
      <rect class="rest" width="1000" height="8"/>\(count.lost > 0 ? "<rect class=\"bad\" width=\"1000\" height=\"8\"/>" : HTML.empty)\
      <rect class="warn" width="\(Int(certain + unsure))" height="8"/><rect class="good" width="\(Int(certain))" height="8"/></svg>
      """
  }
}
