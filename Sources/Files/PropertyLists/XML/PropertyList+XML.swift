internal import Foundation
public import StoreFiles

extension PropertyList {
  /// Reads an XML property list.
  ///
  /// The usual document type line is let through and what it points to is never loaded.
  ///
  /// - Throws: `PropertyListError` where it is not well formed, no property list, or beyond the limits.
  public init(xml bytes: [UInt8], limits: PropertyListLimits = .standard) throws(PropertyListError) {
    var xmlLimits = XMLTree.Limits.standard
    xmlLimits.maximumBytes = min(limits.maximumBytes, xmlLimits.maximumBytes)
    xmlLimits.maximumElements = min(limits.maximumNodes, xmlLimits.maximumElements)
    let root = try XMLTree(bytes, allowing: .propertyList, limits: xmlLimits).root
    guard root.name == "plist" else {
      throw PropertyListError(.notAPropertyList, detail: "its outermost element is not <plist>")
    }
    guard root.children.count == 1, let value = root.children.first else {
      throw PropertyListError(.damaged, detail: "<plist> does not hold exactly one value")
    }
    self = try PropertyList(element: value)
  }

  /// The value of an element; the tree's own depth bounds how deep this goes.
  private init(element: XMLTree.Element) throws(PropertyListError) {
    let text = element.text
    switch element.name {
    case "string": self = .string(text)
    case "true": self = .boolean(true)
    case "false": self = .boolean(false)
    case "integer":
      let digits = text.trimmed
      if let number = Int64(digits) {
        self = .integer(number)
      } else if let number = UInt64(digits) {
        self = .unsigned(number)
      } else {
        throw PropertyListError(.damaged, detail: "an <integer> is no whole number")
      }
    case "real":
      guard let number = Double(text.trimmed) else {
        throw PropertyListError(.damaged, detail: "a <real> is no number")
      }
      self = .real(number)
    case "date":
      guard let date = try? Date(text.trimmed, strategy: .iso8601) else {
        throw PropertyListError(.damaged, detail: "a <date> is no date")
      }
      self = .date(date.timeIntervalSinceReferenceDate)
    case "data":
      guard let data = Data(base64Encoded: text.filter { !$0.isWhitespace }) else {
        throw PropertyListError(.damaged, detail: "<data> is not in base 64")
      }
      self = .data(Array(data))
    case "array":
      var elements: [PropertyList] = []
      for child in element.children { elements.append(try PropertyList(element: child)) }
      self = .array(elements)
    case "dict": self = try .dictionary(Self.entries(of: element))
    default: throw PropertyListError(.damaged, detail: "it holds an element that property lists do not have")
    }
  }

  private static func entries(of element: XMLTree.Element) throws(PropertyListError) -> [String: PropertyList] {
    guard element.children.count.isMultiple(of: 2) else {
      throw PropertyListError(.damaged, detail: "a <dict> has a key without a value")
    }
    var entries: [String: PropertyList] = [:]
    for index in stride(from: 0, to: element.children.count, by: 2) {
      guard element.children[index].name == "key" else {
        throw PropertyListError(.damaged, detail: "a <dict> has a value without a key")
      }
      let value = try PropertyList(element: element.children[index + 1])
      guard entries.updateValue(value, forKey: element.children[index].text) == nil else {
        throw PropertyListError(.damaged, detail: "a <dict> has the same key twice")
      }
    }
    return entries
  }
}

extension String {
  fileprivate var trimmed: String { trimmingCharacters(in: .whitespacesAndNewlines) }
}
