/// Looks through an XML document before the parser sees it, and turns away whatever could make the parser work without
/// bound: document types, entities, deep nesting, other encodings.
struct XMLGate {
  private let bytes: [UInt8]
  private let documentType: XMLTree.DocumentType
  private let limits: XMLTree.Limits
  private var position = 0
  private var depth = 0
  private var elements = 0

  init(_ bytes: [UInt8], allowing documentType: XMLTree.DocumentType, limits: XMLTree.Limits) {
    self.bytes = bytes
    self.documentType = documentType
    self.limits = limits
  }

  mutating func inspect() throws(PropertyListError) {
    guard !bytes.contains(0) else { throw malformed("it contains a NUL byte, so it is not UTF-8 text") }
    guard String(validating: bytes, as: UTF8.self) != nil else { throw malformed("it is not valid UTF-8") }
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
    while position < bytes.count {
      switch bytes[position] {
      case UInt8(ascii: "<"): try inspectTag()
      case UInt8(ascii: "&"): try inspectReference()
      case 0x20, 0x09, 0x0A, 0x0D: position += 1
      default:
        // The parser does not always say so: there is exactly one element at the top, and no text beside it.
        guard depth > 0 else { throw malformed("it has text outside of its outermost element") }
        position += 1
      }
    }
    guard elements > 0, depth == 0 else { throw malformed("it is cut off") }
  }

  private mutating func inspectTag() throws(PropertyListError) {
    if begins("<!--") {
      try skip(past: "-->", what: "comment")
    } else if begins("<![CDATA[") {
      try skip(past: "]]>", what: "CDATA section")
    } else if begins("<?") {
      let start = position
      try skip(past: "?>", what: "processing instruction")
      try inspectDeclaration(bytes[start..<position])
    } else if begins("<!DOCTYPE") {
      try inspectDocumentType()
    } else if begins("<!") {
      throw forbidden("it holds a markup declaration")
    } else if begins("</") {
      depth -= 1
      guard depth >= 0 else { throw malformed("an element ends that did not begin") }
      try skip(past: ">", what: "tag")
    } else {
      try inspectStartTag()
    }
  }

  private mutating func inspectStartTag() throws(PropertyListError) {
    guard depth > 0 || elements == 0 else { throw malformed("it has two outermost elements") }
    elements += 1
    depth += 1
    guard depth <= limits.maximumDepth else {
      throw tooLarge("it is nested deeper than \(limits.maximumDepth) elements")
    }
    guard elements <= limits.maximumElements else {
      throw tooLarge("it has more than \(limits.maximumElements) elements")
    }
    position += 1
    var quote: UInt8?
    var attributes = 0
    while position < bytes.count {
      let byte = bytes[position]
      if let open = quote {
        if byte == open { quote = nil }
        if byte == UInt8(ascii: "&") {
          try inspectReference()
          continue
        }
      } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
        quote = byte
        attributes += 1
        guard attributes <= limits.maximumAttributes else {
          throw tooLarge("an element has more than \(limits.maximumAttributes) attributes")
        }
      } else if byte == UInt8(ascii: ">") {
        if bytes[position - 1] == UInt8(ascii: "/") { depth -= 1 }
        position += 1
        return
      }
      position += 1
    }
    throw malformed("it ends inside of a tag")
  }

  /// An XML declaration may name UTF-8 or ASCII; everything else would be decoded differently from how it was looked at.
  private func inspectDeclaration(_ declaration: ArraySlice<UInt8>) throws(PropertyListError) {
    let text = String(decoding: declaration, as: UTF8.self).lowercased()
    guard text.hasPrefix("<?xml "), let name = text.range(ofText: "encoding") else { return }
    let value = text[name...].drop { $0 != "\"" && $0 != "'" }.dropFirst().prefix { $0 != "\"" && $0 != "'" }
    guard ["utf-8", "utf8", "us-ascii", "ascii"].contains(String(value)) else {
      throw malformed("it is not in UTF-8 but in \(String(value.prefix(40)))")
    }
  }

  private mutating func inspectDocumentType() throws(PropertyListError) {
    guard documentType == .propertyList else { throw forbidden("it declares a document type") }
    var quote: UInt8?
    while position < bytes.count {
      let byte = bytes[position]
      position += 1
      if let open = quote {
        if byte == open { quote = nil }
      } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
        quote = byte
      } else if byte == UInt8(ascii: "[") {
        throw forbidden("its document type has declarations of its own")
      } else if byte == UInt8(ascii: ">") {
        return
      }
    }
    throw malformed("it ends inside of its document type")
  }

  /// A reference may be numeric or one of the five names that XML has by itself.
  private mutating func inspectReference() throws(PropertyListError) {
    position += 1
    let name = bytes[position...].prefix(16).prefix { $0 != UInt8(ascii: ";") }
    let text = String(decoding: name, as: UTF8.self)
    guard text.hasPrefix("#") || ["amp", "lt", "gt", "quot", "apos"].contains(text) else {
      throw forbidden("it refers to an entity that XML does not have by itself")
    }
  }

  private func begins(_ text: StaticString) -> Bool { bytes[position...].starts(with: text.description.utf8) }

  private mutating func skip(past end: String, what: String) throws(PropertyListError) {
    let end = Array(end.utf8)
    var index = position + 2
    while index + end.count <= bytes.count {
      if bytes[index] == end[0], bytes[index..<index + end.count].elementsEqual(end) {
        position = index + end.count
        return
      }
      index += 1
    }
    throw malformed("it ends inside of a \(what)")
  }

  private func malformed(_ detail: String) -> PropertyListError {
    PropertyListError(.malformedXML, operation: "read the XML document", detail: detail)
  }

  private func forbidden(_ detail: String) -> PropertyListError {
    PropertyListError(.forbiddenXML, operation: "read the XML document", detail: detail)
  }

  private func tooLarge(_ detail: String) -> PropertyListError {
    PropertyListError(.xmlTooLarge, operation: "read the XML document", detail: detail)
  }
}

extension String {
  /// The place behind the first occurrence of another text.
  fileprivate func range(ofText text: String) -> String.Index? {
    var index = startIndex
    while index < endIndex {
      if self[index...].hasPrefix(text) { return self.index(index, offsetBy: text.count) }
      index = self.index(after: index)
    }
    return nil
  }
}
