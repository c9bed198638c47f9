import Foundation
import Platform
import TestSupport
import Testing

@Suite struct XMLTests {
  private func tree(_ text: String, allowing: XMLTree.DocumentType = .none) throws -> XMLTree.Element {
    try XMLTree(Array(text.utf8), allowing: allowing).root
  }

  private func kind(_ text: String, allowing: XMLTree.DocumentType = .none) -> FileError.Kind? {
    do {
      _ = try tree(text, allowing: allowing)
      return nil
    } catch {
      return (error as? FileError)?.kind
    }
  }

  @Test func readsElementsAttributesAndText() throws {
    let root = try tree(
      """
      <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
      <!-- a comment & more -->
      <model a="1" b="two &amp; &quot;three&quot; &#252;"><entity name="Café"/>text<![CDATA[ <raw> ]]>end</model>
      """)
    #expect(root.name == "model")
    #expect(root.attributes == ["a": "1", "b": "two & \"three\" ü"])
    #expect(root.children.map(\.name) == ["entity"])
    #expect(root.child(named: "entity")?["name"] == "Café")
    #expect(root.text == "text <raw> end")
  }

  @Test(arguments: [
    ("<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", FileError.Kind.forbiddenXML),
    ("<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>", .forbiddenXML),
    ("<a>&b;</a>", .forbiddenXML),
    ("<a b=\"&c;\"/>", .forbiddenXML),
    ("<a><!ELEMENT b></a>", .forbiddenXML),
    ("<a b=\"1\" b=\"2\"/>", .malformedXML),
    ("<a><b></a></b>", .malformedXML),
    ("<a/><b/>", .malformedXML),
    ("<a/>words", .malformedXML),
    ("words<a/>", .malformedXML),
    ("</a>", .malformedXML),
    ("<!-- only -->", .malformedXML),
    ("<a>", .malformedXML),
    ("<a", .malformedXML),
    ("", .malformedXML),
    ("words", .malformedXML),
    ("<a>\u{0}</a>", .malformedXML),
    ("<?xml version=\"1.0\" encoding=\"UTF-16\"?><a/>", .malformedXML),
    ("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a/>", .malformedXML),
    ("<a>&#0;</a>", .malformedXML),
    ("<a>&#xD800;</a>", .malformedXML),
    ("<a>&#x110000;</a>", .malformedXML),
    ("<a>&#-1;</a>", .malformedXML),
    ("<a>\u{1}</a>", .malformedXML),
    ("<a>]]></a>", .malformedXML),
    ("<a b=\"<\"/>", .malformedXML),
    ("<a b=\"1\"c=\"2\"/>", .malformedXML),
    ("<a b=1/>", .malformedXML),
    ("<a b/>", .malformedXML),
    ("< a/>", .malformedXML),
    ("<1/>", .malformedXML),
    ("<a><!-- -- --></a>", .malformedXML),
    ("<a><![CDATA[ </a>", .malformedXML),
    ("<a><?xml version=\"1.0\"?></a>", .malformedXML),
    ("<?xml encoding=\"UTF-8\"?><a/>", .malformedXML),
    ("<a>&amp</a>", .forbiddenXML),
  ])
  func refuses(_ text: String, _ expected: FileError.Kind) { #expect(kind(text) == expected, "\(text)") }

  @Test func normalizesLineEndsAndSpaces() throws {
    let root = try tree("<a b=\"1\t2\r\n3&#10;4\">x\r\ny\rz&#13;</a>\r\n<!-- end --><?target data?>\n")
    #expect(root["b"] == "1 2 3\n4")
    #expect(root.text == "x\ny\nz\r")
  }

  @Test func readsNamespacesAsTheyStand() throws {
    let root = try tree("\u{FEFF}<p:a xmlns:p=\"\" xmlns='u' p:b=\"1\"/>")
    #expect(root.name == "p:a")
    #expect(root.attributes == ["xmlns:p": "", "xmlns": "u", "p:b": "1"])
  }

  @Test func refusesTextThatIsNotUTF8() {
    #expect(throws: FileError.self) { try XMLTree([0x3C, 0x61, 0x3E, 0xFF, 0xFE, 0x3C, 0x2F, 0x61, 0x3E]) }
  }

  @Test func refusesEntityBombsAtOnce() {
    var text = "<?xml version=\"1.0\"?><!DOCTYPE lolz [<!ENTITY lol0 \"lol\">"
    for level in 1..<20 {
      text += "<!ENTITY lol\(level) \"" + String(repeating: "&lol\(level - 1);", count: 10) + "\">"
    }
    text += "]><model>&lol19;</model>"
    let time = processorTime { #expect(kind(text) == .forbiddenXML) }
    #expect(kind(text, allowing: .propertyList) == .forbiddenXML)
    #expect(time < .seconds(1))
  }

  @Test func refusesAMillionLevelsAtOnce() {
    let text = String(repeating: "<a>", count: 1_000_000)
    let time = processorTime { #expect(kind(text) == .xmlTooLarge) }
    #expect(time < .seconds(1))
  }

  @Test func acceptsSixtyFourLevels() throws {
    let text = String(repeating: "<a>", count: 64) + String(repeating: "</a>", count: 64)
    _ = try tree(text)
    #expect(kind("<a>" + text + "</a>") == .xmlTooLarge)
  }

  @Test func refusesTooManyAttributes() {
    let attributes = (0..<200).map { " a\($0)=\"1\"" }.joined()
    #expect(kind("<a\(attributes)/>") == .xmlTooLarge)
  }

  // MARK: Property lists

  private let head = """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">

    """

  @Test func readsAPropertyList() throws {
    let text =
      head + """
        <plist version="1.0"><dict><key>_XCCurrentVersionName</key><string>Model 2.xcdatamodel</string>
        <key>n</key><integer>-5</integer><key>r</key><real>1.5</real><key>d</key><data>AAH/</data>
        <key>t</key><true/><key>f</key><false/><key>when</key><date>2001-01-01T00:00:10Z</date>
        <key>list</key><array><string>a</string><dict/></array></dict></plist>
        """
    let list = try PropertyList(Array(text.utf8))
    #expect(list["_XCCurrentVersionName"]?.string == "Model 2.xcdatamodel")
    #expect(list["n"] == .integer(-5))
    #expect(list["r"] == .real(1.5))
    #expect(list["d"] == .data([0, 1, 255]))
    #expect(list["t"] == .boolean(true))
    #expect(list["when"] == .date(10))
    #expect(list["list"] == .array([.string("a"), .dictionary([:])]))
  }

  @Test(arguments: [
    "<plist/>", "<plist><dict><key>a</key></dict></plist>", "<plist><integer>x</integer></plist>",
    "<plist><dict><string>a</string><string>b</string></dict></plist>", "<plist><data>!</data></plist>",
    "<plist><date>soon</date></plist>", "<plist><thing/></plist>", "<dict/>",
    "<plist><dict><key>a</key><true/><key>a</key><true/></dict></plist>",
  ])
  func refusesWhatIsNoPropertyList(_ text: String) {
    #expect(throws: FileError.self) { try PropertyList(xml: Array((head + text).utf8)) }
  }

  @Test func survivesMutations() {
    let rounds = mutationCount(usually: 2000)
    let seed = UInt64.random(in: 0...UInt64.max)
    print("mutations of an XML document: \(rounds), seed \(seed)")
    var mutation = Mutation(seed: seed)
    let text = head + "<plist><dict><key>a</key><string>b &amp; c</string><key>d</key><data>AAH/</data></dict></plist>"
    for _ in 0..<rounds {
      do {
        _ = try PropertyList(xml: mutation.apply(to: Array(text.utf8)))
      } catch {
        #expect(!error.detail.isEmpty)
      }
    }
  }
}
