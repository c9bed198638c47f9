import ManagedObjectModel
import Platform
import TestSupport

/// A model with everything that a model can have.
enum Fixture {
  static let everything = model(
    entity(
      "Base", attribute("id", .uuid, optional: false), attribute("label", .string, optional: false),
      attribute("code", .string), attribute("note"), attribute("hidden", transient: true), abstract: true,
      unique: [["id"], ["code", "label"]]),
    entity(
      "Ship", attribute("tons", .integer32, optional: false), attribute("small", .integer16),
      attribute("large", .integer64), attribute("price", .decimal), attribute("length", .double),
      attribute("draught", .float), attribute("isAfloat", .boolean), attribute("launched", .date, optional: false),
      attribute("plans", .binary, external: true), attribute("picture", .binary),
      attribute("extra", .transformable, external: true), attribute("list", .transformable),
      attribute("site", .uri), attribute("size", .composite, elements: [leaf("width", .double), leaf("height")]),
      attribute("crewCount", .integer64, derived: "crew.@count"),
      attribute("upper", .string, derived: "uppercase:(label)"),
      toMany("crew", "Person", inverse: "ship", ordered: true),
      toMany("ports", "Port", inverse: "ships", ordered: true),
      toMany("boats", "Boat"), toOne("captain", "Person", inverse: "commands"), parent: "Base"),
    entity("Boat", attribute("seats", .integer16, optional: false, default: .integer(4)), parent: "Ship"),
    entity("Raft", parent: "Boat"),
    entity(
      "Person", attribute("name", .string, optional: false), attribute("age", .integer16),
      toOne("ship", "Ship", inverse: "crew", optional: false), toOne("commands", "Ship", inverse: "captain"),
      toOne("spouse", "Person", inverse: "spouse"), toMany("friends", "Person", inverse: "friends"),
      toOne("next", "Person", inverse: "previous"), toOne("previous", "Person", inverse: "next"),
      unique: [["name"]]),
    entity(
      "Port", attribute("name", .string, optional: false), toMany("ships", "Ship", inverse: "ports", optional: false),
      toOne("twin", "Port")))

  /// A model in memory as the source of an `.xcdatamodeld` would be read.
  static func version(_ name: String, _ model: ManagedObjectModel, current: Bool = false) -> ModelVersion {
    ModelVersion(name: name, model: model, isCurrent: current)
  }

  /// Surroundings with a clock that stands still; temporary folders need names of their own.
  static var surroundings: Surroundings {
    var surroundings = Surroundings.still()
    surroundings.makeUUID = { UniversalIdentifier.random() }
    return surroundings
  }
}
