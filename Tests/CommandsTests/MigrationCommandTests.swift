import Foundation
import GRDB
import Platform
import SystemPackage
import TestSupport
import Testing

/// `lazaret plan` and `lazaret migrate` as their users run them.
struct MigrationCommandTests {
  @Test func aPlanTouchesNothing() throws {
    let desk = try Desk()
    let store = try desk.makeOldStore()
    let before = try FolderContents(of: desk.folder.path)
    for arguments in [["plan", store], ["migrate", store, "--dry-run"]] {
      let result = try desk.run(arguments + ["--model", desk.model])
      #expect(result.status == 0, "\(result.errors)")
      #expect(result.output.contains("V1 → V2 in 1 step, 1 record"))
      #expect(result.output.contains("Nothing was touched."))
    }
    #expect(try FolderContents(of: desk.folder.path) == before)
  }

  @Test func whatWouldBeLostIsCounted() throws {
    let desk = try Desk()
    let result = try desk.lazaret("plan", try desk.makeOldStore(), "--model", try desk.makeLosingModel())
    // The model drops the attribute, so that this is what is wanted.
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.output.contains("Car.name is removed: its values are deleted (1 record)"), "\(result.output)")
  }

  @Test func aStoreIsMigratedAndTheOriginalKept() throws {
    let desk = try Desk()
    let store = try desk.makeOldStore()
    let result = try desk.lazaret("migrate", store, "--model", desk.model, "--json")
    #expect(result.status == 0, "\(result.errors)")
    let value = try #require(try json(result.output) as? [String: Any])
    let backup = try #require(value["backup"] as? String)
    let old = try desk.lazaret("inspect", backup, "--model", desk.model, "--json").output
    #expect((try json(old) as? [String: Any])?["verdict"] as? String == "outdated")
    let inspected = try #require(
      try json(try desk.lazaret("inspect", store, "--model", desk.model, "--json").output) as? [String: Any])
    #expect(inspected["verdict"] as? String == "compatible")
    #expect((inspected["entities"] as? [[String: Any]])?.first?["rows"] as? Int == 1)
    let again = try desk.lazaret("migrate", store, "--model", desk.model)
    #expect(again.status == 0 && again.output.contains("nothing to migrate"))
  }

  @Test func aLossIsToldAndIsTheExitCodeUnlessTheModelPlansIt() throws {
    let desk = try Desk()
    let result = try desk.lazaret(
      "migrate", try desk.makeOldStore(), "--model", try desk.makeLosingModel(), "-o", "New.sqlite")
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.output.contains("Car.name is removed"))
    #expect(try FileSystem().status(of: desk.folder.appending("New.sqlite")) != nil)
    // Back to the version before is no plan of the model's.
    let newer = try desk.makeOldStore("Newer.sqlite")
    #expect(try desk.lazaret("migrate", newer, "--model", desk.model).status == 0)
    let queue = try DatabaseQueue(path: newer)
    try queue.writeWithoutTransaction { try $0.execute(sql: "UPDATE ZCAR SET ZCOLOR = 'red'") }
    try queue.close()
    let back = try desk.lazaret("migrate", newer, "--model", desk.model, "--to", "V1", "-o", "Back.sqlite")
    #expect(back.status == 2, "\(back.output)\(back.errors)")
    #expect(back.output.contains("Car.color is removed"), "\(back.output)")
  }

  @Test func aStoreIsOpenedAsTheVersionThatWasNamed() throws {
    let desk = try Desk()
    let store = try desk.makeOldStore()
    #expect(try desk.lazaret("migrate", store, "--model", desk.model).status == 0)
    let opened = try desk.lazaret("open", store, "--model", desk.model, "--to", "V1", "--json")
    #expect(opened.status == 0 || opened.status == 2, "\(opened.errors)")
    let again = try json(try desk.lazaret("inspect", store, "--model", desk.model, "--json").output) as? [String: Any]
    #expect(again?["modelVersion"] as? String == "V1")
    let unknown = try desk.lazaret("open", store, "--model", desk.model, "--to", "V9")
    #expect(unknown.status == 1 && unknown.errors.contains("[model-version-order]"), "\(unknown.errors)")
  }

  @Test func whatCannotBeInferredIsRefusedBeforeAnythingIsTouched() throws {
    let desk = try Desk()
    let store = try desk.makeOldStore()
    let model = try desk.makeRefusedModel()
    let before = try FolderContents(of: desk.folder.path)
    let plan = try desk.lazaret("plan", store, "--model", model)
    #expect(plan.status == 2)
    #expect(plan.output.contains("Refused: step V1 → V2: attribute Car.name"), "\(plan.output)")
    #expect(plan.output.contains("(134190)"))
    let result = try desk.lazaret("migrate", store, "--model", model, "--json")
    #expect(result.status == 1)
    let error = try #require((try json(result.errors) as? [String: Any])?["error"] as? [String: Any])
    #expect(error["code"] as? String == "mapping-not-inferable")
    #expect(try FolderContents(of: desk.folder.path, ignoring: ["Reports"]) == before)
  }

  @Test func anUnknownVersionAndAMissingStoreAreErrors() throws {
    let desk = try Desk()
    let store = try desk.makeOldStore()
    let version = try desk.lazaret("plan", store, "--model", desk.model, "--to", "V9")
    #expect(version.status == 1 && version.errors.contains("[unknown-version]"))
    for verb in ["plan", "migrate"] {
      let missing = try desk.lazaret(verb, "Stores/None.sqlite", "--model", desk.model)
      #expect(missing.status != 0 && missing.errors.contains("[file-not-found]"), "\(missing.errors)")
    }
    #expect(try desk.lazaret("migrate", store, "--model", desk.model, "--fast").status == 64)
  }
}
