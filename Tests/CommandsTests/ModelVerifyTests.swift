import Foundation
import Platform
import SystemPackage
import TestSupport
import Testing

#if canImport(FoundationXML)
  import FoundationXML
#endif

/// `lazaret model verify`: what it prints, writes and ends with.
struct ModelVerifyTests {
  private func xml(_ attributes: String) -> String {
    """
    <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
    <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0">
      <entity name="Car" representedClassName="Car" syncable="YES">\(attributes)</entity>
    </model>
    """
  }

  private func attribute(_ name: String, _ type: String = "String", optional: Bool = true) -> String {
    "<attribute name=\"\(name)\"\(optional ? " optional=\"YES\"" : "") attributeType=\"\(type)\"/>"
  }

  /// A desk with a model of two versions.
  private func desk(_ first: String, _ second: String) throws -> (desk: Desk, model: String) {
    let desk = try Desk()
    try desk.folder.write(xml(first), to: "Cars.xcdatamodeld/V1.xcdatamodel/contents")
    try desk.folder.write(xml(second), to: "Cars.xcdatamodeld/V2.xcdatamodel/contents")
    return (desk, desk.folder.appending("Cars.xcdatamodeld").string)
  }

  @Test func theExampleIsFine() throws {
    let desk = try Desk()
    let garage = RealMaterial.projectRoot.appending("Examples/Garage.xcdatamodeld").string
    let before = try FolderContents(of: desk.folder.path)
    let result = try desk.lazaret("model", "verify", garage, "--rows", "8")
    #expect(result.status == 0, "\(result.output)\(result.errors)")
    #expect(result.errors == "1/1  Garage → Garage 2: ok\n")
    #expect(result.output.contains("Every version migrates, and nothing is lost."))
    // The same seed, the same words; and nothing is left behind.
    #expect(try desk.lazaret("model", "verify", garage, "--rows", "8").output == result.output)
    #expect(try FolderContents(of: desk.folder.path) == before)
  }

  @Test func lossesFailUnlessTheyAreAllowed() throws {
    let (desk, model) = try desk(attribute("name") + attribute("color"), attribute("name"))
    let result = try desk.lazaret("model", "verify", model, "--junit", "out.xml")
    #expect(result.status == 2)
    #expect(result.output.contains("Car.color is removed"))
    func junit() throws -> String {
      String(
        decoding: try FileSystem().contents(of: desk.folder.appending("out.xml"), limit: 1 << 20), as: UTF8.self)
    }
    #expect(try junit().contains("<failure type=\"loss\""))
    #expect(try junit().contains("<testcase name=\"V1 → V2\" classname=\"Cars.steps\""))
    #expect(try desk.lazaret("model", "verify", model, "--allow-losses", "--junit", "out.xml").status == 0)
    #expect(try !junit().contains("<failure"))
    let parser = XMLDocumentCheck()
    #expect(parser.isWellFormed(try junit()))
  }

  @Test func refusalsAndFailuresAreFailures() throws {
    let (desk, model) = try desk(attribute("name"), attribute("name", "Date"))
    let refused = try desk.lazaret("model", "verify", model)
    #expect(refused.status == 1)
    #expect(refused.output.contains("refused"))
    let (other, strict) = try self.desk(attribute("name"), attribute("name") + attribute("id", "UUID", optional: false))
    #expect(try other.lazaret("model", "verify", strict).status == 1)
    let empty = try other.lazaret("model", "verify", strict, "--rows", "0")
    #expect(empty.status == 0)
  }

  @Test func storesWithCertainRecordsAreToldApart() throws {
    let (desk, model) = try desk(
      attribute("name"),
      attribute("name") + "<uniquenessConstraints><uniquenessConstraint><constraint value=\"name\"/>"
        + "</uniquenessConstraint></uniquenessConstraints>")
    let result = try desk.lazaret("model", "verify", model, "--rows", "3", "--json")
    let report = try #require(try json(result.output) as? [String: Any])
    #expect(report["outcome"] as? String == "conditional")
    #expect(result.status == 2)
    #expect(try desk.lazaret("model", "verify", model, "--rows", "3", "--allow-conditions").status == 0)
  }

  @Test func storesAreKeptAndVersionsChosen() throws {
    let (desk, model) = try desk(attribute("name"), attribute("name") + attribute("color"))
    #expect(try desk.lazaret("model", "verify", model, "--keep", "kept", "--from", "V1").status == 0)
    let kept = try FileSystem().entries(of: desk.folder.appending("kept")).map(\.string)
    #expect(kept.contains("V1-typical-store.sqlite") && kept.contains("V1-typical-step-1-to-V2.sqlite"), "\(kept)")
    let inspected = try desk.lazaret("inspect", "kept/V1-edge-step-1-to-V2.sqlite", "--model", model)
    #expect(inspected.status == 0, "\(inspected.output)")
    let unknown = try desk.lazaret("model", "verify", model, "--from", "V9")
    #expect(unknown.status == 1)
    #expect(unknown.errors.contains("[unknown-version]"))
    #expect(try desk.lazaret("model", "verify", model, "--rows", "-1").status == 64)
    #expect(try desk.lazaret("model", "verify", model, "--jobs", "0").status == 64)
  }

  @Test func whatIsNewerIsToldOfTheModelAndNotOfAStore() throws {
    let (desk, model) = try desk(attribute("name"), attribute("name") + attribute("color"))
    try desk.folder.write(
      """
      <?xml version="1.0" encoding="UTF-8"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
      <plist version="1.0"><dict><key>_XCCurrentVersionName</key><string>V1.xcdatamodel</string></dict></plist>
      """, to: "Cars.xcdatamodeld/.xccurrentversion")
    let named = try desk.lazaret("model", "verify", model)
    #expect(named.status == 2 && named.output.contains("V2 → V1: ok, with losses"), "\(named.output)\(named.errors)")
    let whole = try desk.lazaret("model", "verify", model, "--versions", "V1,V2")
    #expect(whole.status == 2, "\(whole.output)\(whole.errors)")
    #expect(whole.output.contains("Not checked, since newer than V1: V2"))
    let chosen = try desk.lazaret("model", "verify", model, "--from", "V2", "--versions", "V1,V2")
    #expect(chosen.status == 1)
    #expect(chosen.errors.contains("version \"V2\" is newer than the current one, \"V1\""), "\(chosen.errors)")
    #expect(!chosen.errors.contains("the store is"))
  }
}

/// Annotations of `model lint` and `model verify`, and the script that a build server runs.
struct ModelAnnotationTests {
  /// A desk with a model of two versions, of which the second has lost an attribute, or changed a type.
  private func desk(_ second: String) throws -> Desk {
    let desk = try Desk()
    for (version, attributes) in [("V1", ["color", "plate"]), ("V2", [])] {
      let lines = attributes.map { "    <attribute name=\"\($0)\" optional=\"YES\" attributeType=\"String\"/>\n" }
      try desk.folder.write(
        """
        <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
        <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0">
          <entity name="Car" representedClassName="Car" syncable="YES">
        \(version == "V1" ? lines.joined() : second)
          </entity>
        </model>
        """, to: "Repository/Cars.xcdatamodeld/\(version).xcdatamodel/contents")
    }
    return desk
  }

  private let lossy = "    <attribute name=\"color\" optional=\"YES\" attributeType=\"String\"/>"
  private let refused = """
        <attribute name="color" optional="YES" attributeType="String"/>
        <attribute name="plate" optional="YES" attributeType="Date"/>
    """

  @Test func annotationsHaveFileAndLine() throws {
    let desk = try desk(refused)
    let model = desk.folder.appending("Repository/Cars.xcdatamodeld").string
    for verb in ["lint", "verify"] {
      let github = try desk.lazaret("model", verb, model, "--annotate", "github")
      #expect(
        github.output.contains(
          "::error file=\(model)/V2.xcdatamodel/contents,line=5,title=V1 → V2"), "\(github.output)")
      let xcode = try desk.lazaret("model", verb, model, "--annotate", "xcode")
      #expect(xcode.output.contains("\(model)/V2.xcdatamodel/contents:5: error: V1 → V2"), "\(xcode.output)")
      #expect(try desk.lazaret("model", verb, model, "--annotate", "xcode", "--json").status == 64)
    }
    let found = try desk.lazaret("model", "lint", model, "--json")
    let findings = try #require((try json(found.output) as? [String: Any])?["findings"] as? [[String: Any]])
    #expect(findings.first?["line"] as? Int == 5)
    #expect((findings.first?["file"] as? String)?.hasSuffix("Cars.xcdatamodeld/V2.xcdatamodel/contents") == true)
  }

  private func check(_ desk: Desk, _ variables: String...) throws -> ChildProcess.Result {
    let script = RealMaterial.projectRoot.appending("Scripts/check-models").string
    return try ChildProcess.run(
      "env", ["LAZARET=\(ChildProcess.tool)", "CHECK_ROWS=3"] + variables + ["bash", script],
      in: desk.folder.appending("Repository"))
  }

  @Test func theScriptOfABuildServerFailsWhereItShould() throws {
    let desk = try desk(lossy)
    let warned = try check(desk)
    #expect(warned.status == 0, "\(warned.output)\(warned.errors)")
    #expect(warned.output.contains("\n::warning file=Cars.xcdatamodeld/V2.xcdatamodel/contents,line=3,"))
    #expect(try check(desk, "CHECK_FAIL_ON=warning").status == 1)
    #expect(try check(desk, "CHECK_MODEL=Missing.xcdatamodeld").status == 1)
    #expect(try check(desk, "CHECK_FAIL_ON=nothing").status == 1)
    let summary = desk.folder.appending("summary.md")
    let failing = try self.desk(refused)
    let failed = try check(failing, "CHECK_JUNIT=out.xml", "GITHUB_STEP_SUMMARY=\(summary.string)")
    #expect(failed.status == 1)
    #expect(failed.output.contains("\n::error file=Cars.xcdatamodeld/V2.xcdatamodel/contents,line=5,"))
    let text = String(decoding: try FileSystem().contents(of: summary, limit: 1 << 20), as: UTF8.self)
    #expect(text.contains("### Verification: `Cars.xcdatamodeld`") && !text.contains("::error"))
    #expect(try FileSystem().status(of: failing.folder.appending("Repository/out.xml")) != nil)
  }

  @Test func theScriptTakesTheExample() throws {
    let desk = try Desk()
    let example = RealMaterial.projectRoot.appending("Examples").string
    try FileSystem().makeDirectory(desk.folder.appending("Repository"))
    let result = try check(desk, "CHECK_MODEL=\(example)/Garage.xcdatamodeld")
    #expect(result.status == 0, "\(result.output)\(result.errors)")
    #expect(result.output.contains("Every version migrates, and nothing is lost."))
  }
}

/// Foundation's reader, which takes nothing that is not well-formed.
private final class XMLDocumentCheck: NSObject, XMLParserDelegate {
  func isWellFormed(_ text: String) -> Bool { XMLParser(data: Data(text.utf8)).parse() }
}
