internal import Foundation

#if canImport(FoundationXML)
  internal import FoundationXML
#endif

/// Builds a tree from what Foundation's event parser reports.
final class XMLTreeBuilder: NSObject, XMLParserDelegate {
  private let limits: XMLTree.Limits
  private var open: [XMLTree.Element] = []
  private var root: XMLTree.Element?
  private var elements = 0
  private var failure: PropertyListError?

  private init(limits: XMLTree.Limits) { self.limits = limits }

  /// The root element of a document that has passed the gate.
  static func read(_ bytes: [UInt8], limits: XMLTree.Limits) throws(PropertyListError) -> XMLTree.Element {
    let builder = XMLTreeBuilder(limits: limits)
    let parser = XMLParser(data: Data(bytes))
    parser.shouldResolveExternalEntities = false
    parser.shouldProcessNamespaces = false
    parser.delegate = builder
    let succeeded = parser.parse()
    parser.delegate = nil
    if let failure = builder.failure { throw failure }
    guard succeeded, let root = builder.root, builder.open.isEmpty else {
      let place = parser.lineNumber > 0 ? " near line \(parser.lineNumber)" : ""
      throw PropertyListError(
        .malformedXML, operation: "read the XML document", detail: "it is not well formed\(place)")
    }
    return root
  }

  func parser(
    _ parser: XMLParser, didStartElement elementName: String, namespaceURI: String?, qualifiedName: String?,
    attributes: [String: String]
  ) {
    guard failure == nil else { return }
    elements += 1
    guard elements <= limits.maximumElements, open.count < limits.maximumDepth,
      attributes.count <= limits.maximumAttributes, root == nil
    else {
      fail(.xmlTooLarge, "it has more elements, levels or attributes than are accepted", parser)
      return
    }
    open.append(XMLTree.Element(name: elementName, attributes: attributes))
  }

  func parser(
    _ parser: XMLParser, didEndElement elementName: String, namespaceURI: String?, qualifiedName: String?
  ) {
    guard failure == nil else { return }
    guard let element = open.popLast(), element.name == elementName else {
      fail(.malformedXML, "an element ends that did not begin", parser)
      return
    }
    if open.isEmpty {
      root = element
    } else {
      open[open.count - 1].children.append(element)
    }
  }

  func parser(_ parser: XMLParser, foundCharacters string: String) {
    guard failure == nil, !open.isEmpty else { return }
    open[open.count - 1].text += string
  }

  func parser(_ parser: XMLParser, foundCDATA block: Data) {
    guard failure == nil, !open.isEmpty else { return }
    open[open.count - 1].text += String(decoding: block, as: UTF8.self)
  }

  private func fail(_ kind: PropertyListError.Kind, _ detail: String, _ parser: XMLParser) {
    failure = PropertyListError(kind, operation: "read the XML document", detail: detail)
    parser.abortParsing()
  }
}
