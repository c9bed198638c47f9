import Foundation

/// Texts by which pages are attacked (after OWASP's cheat sheet), and a check of what a page made of them.
enum XSS {
  static let corpus = [
    "<script>alert(1)</script>", "\"><script>alert(1)</script>", "'><img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>", "\" onmouseover=\"alert(1)", "' onfocus='alert(1)' autofocus='", "javascript:alert(1)",
    "</title><script>alert(1)</script>", "</textarea><script>alert(1)</script>", "<!--<img src=x onerror=alert(1)>-->",
    "<iframe src=javascript:alert(1)>", "`onclick=alert(1)`", "{{constructor.constructor('alert(1)')()}}",
    "<a href=\"javascript:alert(1)\">x</a>", "\u{2028}alert(1)", "<scr\u{1}ipt>alert(1)</scr\u{1}ipt>",
    "\u{202E}<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;", "<math><mi//xlink:href=\"data:x\">",
    "</svg><script>alert(1)</script>", "]]><script>alert(1)</script>", "<style>*{x:expression(alert(1))}</style>",
    "<base href=//evil.example>", "<meta http-equiv=refresh content=0;url=//evil.example>",
  ]

  /// The elements that our own pages have.
  private static let elements: Set<String> = [
    "html", "head", "meta", "title", "link", "script", "body", "a", "header", "div", "nav", "svg", "path", "rect",
    "button", "main", "ol", "ul", "li", "h1", "h2", "h3", "p", "span", "section", "form", "input", "label", "select",
    "option", "table", "caption", "thead", "tbody", "tr", "th", "td", "dl", "dt", "dd", "code", "pre", "time", "br",
    "strong", "b", "small", "footer", "progress", "noscript", "details", "summary", "ins", "del", "mark", "fieldset",
    "legend", "hr", "em", "search", "figure", "figcaption", "img", "aside", "sub", "sup", "kbd", "var", "textarea",
    "article", "datalist", "output", "abbr", "q",
  ]

  /// What in a page was not written by us: unknown elements, handlers, scripts with content, foreign addresses.
  static func findings(in page: String) -> [String] {
    var findings: [String] = []
    var rest = page[...]
    while let start = rest.firstIndex(of: "<") {
      rest = rest[rest.index(after: start)...]
      // A tag ends at the first ">" outside quotation marks.
      var quote: Character?
      var end = rest.startIndex
      while end < rest.endIndex, quote != nil || rest[end] != ">" {
        let character = rest[end]
        if let open = quote {
          if character == open { quote = nil }
        } else if character == "\"" || character == "'" {
          quote = character
        }
        end = rest.index(after: end)
      }
      let tag = String(rest[..<end])
      rest = end < rest.endIndex ? rest[rest.index(after: end)...] : ""
      if tag.hasPrefix("!DOCTYPE") { continue }
      let name = tag.drop { $0 == "/" }.prefix { $0.isLetter || $0.isNumber }.lowercased()
      if !elements.contains(name) { findings.append("element \(tag.prefix(60))") }
      let plain = withoutValues(tag)
      if plain.contains(" on") || plain.contains(" style") { findings.append("attribute \(tag.prefix(60))") }
      for marker in ["href=\"", "src=\"", "action=\""] {
        guard let range = tag.range(of: marker) else { continue }
        let value = tag[range.upperBound...]
        if !value.hasPrefix("/") && !value.hasPrefix("#") || value.hasPrefix("//") {
          findings.append("address \(tag.prefix(60))")
        }
      }
      if name == "script", !tag.hasPrefix("/"), !rest.hasPrefix("</script>") { findings.append("script") }
    }
    return findings
  }

  /// A tag without what is between quotation marks.
  private static func withoutValues(_ tag: String) -> String {
    var isInside = false
    return tag.filter { character in
      if character == "\"" { isInside.toggle() }
      return !isInside
    }
  }
}
