//! What is, and what is not, the archive's table.

use std::error::Error;

use super::{PlanetCatalog, PlanetCatalogError};

const COLUMNS: &str = "pl_name,hostname,discoverymethod,disc_year,disc_facility,pl_controv_flag,pl_bmasse,pl_rade,\
                       pl_orbper,pl_orbsmax,pl_orbeccen,pl_eqt,pl_insol,st_spectype,st_teff,st_rad,st_mass,sy_snum,\
                       sy_pnum,sy_dist,sy_vmag,ra,dec";
const UNKNOWN: &str = ",,,,,,,,,,,,1,1,,,0.5,-0.5";

/// A table of planets with nothing known but these first columns.
fn table(planets: &[&str]) -> Result<PlanetCatalog, PlanetCatalogError> {
    let lines: String = planets.iter().map(|planet| format!("{planet}{UNKNOWN}\n")).collect();
    PlanetCatalog::parse(format!("{COLUMNS}\n{lines}").as_bytes())
}

#[test]
fn planets_keep_the_tables_order_and_are_found_by_name_star_and_facility() {
    let catalog =
        table(&["A b,A,Transit,2001,Here,0", "B b,B,Imaging,2000,Here,1", "A c,A,Transit,,Here,0"]).unwrap();
    let names = |records: &mut dyn Iterator<Item = &std::sync::Arc<super::Record>>| -> Vec<String> {
        records.map(|record| record.name.clone()).collect()
    };
    assert_eq!(names(&mut catalog.records().iter()), ["A b", "B b", "A c"]);
    assert_eq!(names(&mut catalog.of_star("A")), ["A b", "A c"]);
    assert_eq!(names(&mut catalog.of_star("C")), [""; 0]);
    let here = catalog.facility("Here").unwrap();
    assert_eq!((here.first_year, here.planet_count()), (2000, 3));
    assert_eq!(names(&mut catalog.of_facility(here)), ["A b", "B b", "A c"]);
    let planet = catalog.find("B b").unwrap();
    assert!(planet.controversial && planet.mass.is_none() && planet.spectral_type.is_none());
}

#[test]
fn an_empty_table_is_a_table() {
    assert!(table(&[]).unwrap().is_empty());
}

#[test]
fn a_table_that_contradicts_itself_is_refused() {
    let twice = table(&["A b,A,Transit,2001,Here,0", "A b,A,Transit,2001,Here,0"]).unwrap_err();
    assert_eq!(twice.to_string(), "two lines of the table are about A b");
    let undated = table(&["A b,A,Transit,,Here,0"]).unwrap_err();
    assert_eq!(undated.to_string(), "no discovery of Here has a year");
}

#[test]
fn a_line_that_cannot_be_read_is_named() {
    for (planet, says) in [
        ("A b,A,Dowsing,2001,Here,0", "the discovery method Dowsing is not known"),
        ("A b,A,Transit,2001,Here,2", "2 is not a flag"),
        ("A b,A,Transit,soon,Here,0", "invalid digit"),
        ("A b,A,Transit,2001,Here", "record with 22 fields"),
    ] {
        let error = table(&[planet]).unwrap_err();
        let cause = error.source().unwrap().to_string();
        assert!(cause.contains(says) && cause.contains("line: 2"), "{planet}: {cause}");
    }
    assert!(PlanetCatalog::parse(b"name,mass\nA b,1\n").is_err());
}
