import Foundation
import Platform
import Testing

@Suite struct KeyedArchiveTests {
  /// Two objects that refer to each other.
  private func cyclicArchive() throws -> [UInt8] {
    var writer = KeyedArchiveWriter()
    let first = writer.reserve()
    let second = writer.reserve()
    let name = writer.string("first")
    writer.define(
      first, classes: ["Thing", "NSObject"],
      ["other": second.value, "name": name.value, "flag": .boolean(true), "count": .integer(3)])
    writer.define(second, classes: ["Thing", "NSObject"], ["other": first.value, "name": writer.string(nil).value])
    return try writer.bytes(root: first)
  }

  @Test func followsReferencesAndCycles() throws {
    let archive = try KeyedArchive(cyclicArchive())
    let first = archive.root
    #expect(first.className == "Thing")
    #expect(first.classNames == ["Thing", "NSObject"])
    #expect(first.string("name") == "first")
    #expect(first.boolean("flag"))
    #expect(first.integer("count") == 3)
    let second = try #require(first.object("other"))
    #expect(second.string("name") == nil)
    #expect(second.object("other")?.number == first.number)
  }

  @Test func readsAndWritesCollections() throws {
    var writer = KeyedArchiveWriter()
    let a = writer.string("a")
    let b = writer.value(.integer(7))
    let root = writer.reserve()
    writer.define(
      root, classes: ["Root", "NSObject"],
      [
        "list": writer.array([a, b]).value, "set": writer.set([a]).value,
        "map": writer.dictionary([("k", b), ("l", a)], isMutable: true).value,
        "known": writer.knownKeysDictionary([("m", a), ("n", writer.string(ArchivedObject.emptySlotToken))]).value,
      ])
    let object = try KeyedArchive(writer.bytes(root: root)).root
    #expect(object.object("list")?.elements?.count == 2)
    #expect(object.object("set")?.elements?.compactMap(\.string) == ["a"])
    #expect(object.object("map")?.entries?.map(\.key) == ["k", "l"])
    #expect(object.object("known")?.entries?.map(\.key) == ["m"])
  }

  @Test func isReadByFoundation() throws {
    var writer = KeyedArchiveWriter()
    let inner = writer.array([writer.string("größer"), writer.value(.integer(7))])
    let root = writer.dictionary([("list", inner)])
    let data = Data(try writer.bytes(root: root))
    let object = try NSKeyedUnarchiver.unarchivedObject(
      ofClasses: [NSDictionary.self, NSArray.self, NSString.self, NSNumber.self], from: data)
    let dictionary = try #require(object as? NSDictionary)
    let list = try #require(dictionary["list"] as? [Any])
    #expect(list.first as? String == "größer")
    #expect((list.last as? NSNumber)?.intValue == 7)
  }

  @Test func readsWhatFoundationArchives() throws {
    let data = try NSKeyedArchiver.archivedData(
      withRootObject: ["k": "v"] as NSDictionary, requiringSecureCoding: false)
    let entries = try #require(try KeyedArchive(Array(data)).root.entries)
    #expect(entries.map(\.key) == ["k"])
    #expect(entries.first?.value.string == "v")
  }

  @Test func refusesForeignArchivesByName() throws {
    let xml =
      "<plist><dict><key>$archiver</key><string>GSKeyedArchiver</string><key>$top</key><dict><key>root</key>"
      + "<dict><key>CF$UID</key><integer>1</integer></dict></dict></dict></plist>"
    #expect { try KeyedArchive(Array(xml.utf8)) } throws: { ($0 as? FileError)?.kind == .foreignKeyedArchive }
    let other = PropertyList.dictionary([
      "$archiver": .string("Other"), "$objects": .array([.string("$null")]), "$top": .dictionary(["root": .uid(0)]),
    ])
    #expect { try KeyedArchive(other.binaryBytes()) } throws: {
      ($0 as? FileError)?.kind == .foreignKeyedArchive
    }
    #expect { try KeyedArchive(PropertyList.dictionary([:]).binaryBytes()) } throws: {
      ($0 as? FileError)?.kind == .notAKeyedArchive
    }
  }

  @Test func refusesARootThatIsNotThere() throws {
    let list = PropertyList.dictionary([
      "$archiver": .string("NSKeyedArchiver"), "$objects": .array([]), "$top": .dictionary(["root": .uid(5)]),
    ])
    #expect(throws: FileError.self) { try KeyedArchive(list.binaryBytes()) }
  }
}
