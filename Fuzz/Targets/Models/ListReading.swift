internal import ManagedObjectModel
internal import Platform

/// Reads bytes as property lists, archives, XML and predicates.
enum ListReading {
  static func run(list bytes: [UInt8]) throws(FuzzFailure) {
    let list: PropertyList
    do throws(FileError) {
      list = try PropertyList(bytes)
    } catch {
      return
    }
    let written: [UInt8]
    do throws(FileError) {
      written = try list.binaryBytes()
    } catch {
      throw FuzzFailure("what was read cannot be written: \(error.detail)")
    }
    let again: [UInt8]
    do throws(FileError) {
      again = try PropertyList(written).binaryBytes()
    } catch {
      // Objects that are shared may be more than the limits allow when each is written out.
      return try expect(error.kind == .propertyListTooLarge, "what was written cannot be read: \(error.detail)")
    }
    try expect(again == written, "a property list differs when it is written again")
  }

  static func run(archive bytes: [UInt8]) {
    let archive: KeyedArchive
    do throws(FileError) {
      archive = try KeyedArchive(bytes)
    } catch {
      return
    }
    let root = archive.root
    _ = root.className
    _ = root.classNames
    _ = root.string
    _ = root.elements
    for (_, value) in root.entries ?? [] {
      _ = value.string
      _ = value.elements
      _ = value.content.real
    }
    var reader = ArchivedPredicateReader(budget: 10_000)
    let predicate = reader.predicate(root)
    let expression = reader.expression(root)
    var writer = KeyedArchiveWriter()
    _ = ArchivedPredicateWriter.add(predicate, to: &writer)
    _ = ArchivedPredicateWriter.add(expression, to: &writer)
  }

  static func run(xml bytes: [UInt8]) throws(FuzzFailure) {
    _ = XMLTree.looksLikeXML(bytes)
    let tree: XMLTree
    do throws(FileError) {
      tree = try XMLTree(bytes)
    } catch {
      return
    }
    var elements = 0
    var open = [tree.root]
    while let element = open.popLast() {
      elements += 1
      _ = element.base64Data
      open.append(contentsOf: element.children)
    }
    try expect(elements * 4 <= bytes.count, "\(elements) elements in \(bytes.count) bytes")
  }

  static func run(predicate bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    var writer = KeyedArchiveWriter()
    if let predicate = FormatParser.predicate(text) { _ = ArchivedPredicateWriter.add(predicate, to: &writer) }
    if let expression = FormatParser.expression(text) { _ = ArchivedPredicateWriter.add(expression, to: &writer) }
  }
}
