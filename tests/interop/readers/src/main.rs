//! read_npz FILE...: what ndarray-npy reads of .npy files of float32 and of .npz files of uint8 and float32.
use ndarray::{ArrayD, OwnedRepr};
use ndarray_npy::{read_npy, NpzReader};
use std::{env, error::Error, fs::File};

fn read_npz(path: &str) -> Result<(), Box<dyn Error>> {
    let mut archive = NpzReader::new(File::open(path)?)?;
    for name in archive.names()? {
        match archive.by_name::<OwnedRepr<u8>, ndarray::IxDyn>(&name) {
            Ok(array) => println!("{name} u8 {:?} {}", array.shape(), array.iter().map(|&x| x as u64).sum::<u64>()),
            Err(_) => {
                let array: ArrayD<f32> = archive.by_name(&name)?;
                println!("{name} f32 {:?} {}", array.shape(), array.sum());
            }
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    for path in env::args().skip(1) {
        if path.ends_with(".npz") {
            read_npz(&path)?;
        } else {
            let array: ArrayD<f32> = read_npy(&path)?;
            println!("f32 {:?} {}", array.shape(), array.sum());
        }
    }
    Ok(())
}
