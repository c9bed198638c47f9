import ManagedObjectModel
import Migration
import Testing

/// What people read of a mapping.
struct MappingListingTests {
  @Test func everythingIsSaidInAHundredColumns() {
    let before = model(
      entity(
        "Car", attribute("color"), attribute("doors", .integer16), attribute("note"), attribute("photo", .binary),
        toOne("driver", "Person", inverse: "cars")),
      entity("Person", attribute("name"), toMany("cars", "Car", inverse: "driver")), entity("Wheel"), entity("Same"))
    let after = model(
      entity(
        "Auto", attribute("paint", optional: false, default: .string("red"), id: "color"),
        attribute("doors", .integer32), attribute("note", .date), attribute("photo", .binary, external: true),
        attribute("plate", optional: false), toOne("owner", "Person", inverse: "autos", id: "driver"), id: "Car"),
      entity("Person", attribute("name", optional: false), toMany("autos", "Auto", inverse: "owner", id: "cars")),
      entity("Garage"), entity("Same"))
    let inference = MappingInference(from: before, to: after)
    let listing = MappingListing(inference, from: "V1", to: "V2")
    #expect(listing.lines.allSatisfy { $0.count <= 100 })
    #expect(
      listing.text == """
        V1 → V2: cannot be migrated without a custom mapping

        Entities
          ~ Auto  (before: Car)
              ~ doors  Integer 16 → Integer 32
              ! note  refused, see below
              ~ owner  before: driver
              ~ paint  before: color; mandatory: nil becomes the default
              ~ photo  external storage on
              + plate  new, mandatory and empty
          + Garage  new
          ~ Person
              ~ autos  before: cars
              ~ name  becomes mandatory
          - Wheel  removed
          1 more with records as they were

        Lost
          Wheel is removed: all its records are deleted

        Depends on the data
          Auto.plate is new, mandatory and has no default: the migration fails where there are records of
            the entity
          Person.name becomes mandatory and has no default: a record without a value makes the migration
            fail

        Refused
          attribute Auto.note (before: Car.note) changes its type from String to Date
            Core Data says: Source and destination attribute types are incompatible (134190)
            Way round: Keep the attribute and add a new one under another name, convert the values in a
              custom step, and remove the old one in the version after it; or give a mapping with an
              expression for it.

        """)
  }

  @Test func namesCannotSteerTheTerminal() {
    let evil = "A\u{1B}[2J\nB"
    let inference = MappingInference(
      from: model(entity(evil, attribute(evil))), to: model(entity(evil, attribute(evil, .date))))
    for text in [MappingListing(inference, from: evil, to: evil).text, inference.refusals.map(\.detail).joined()] {
      #expect(!text.contains("\u{1B}"))
    }
  }
}
